import { errorCode } from "../../../domain/system-files.ts";
import type { Logger } from "../../../telemetry/log/logger.ts";
import type { SocketListener } from "../../link/unix-socket.ts";
import { readProgramState } from "./program-state.ts";
import { listenForRestarts, restartSocketPath } from "./restart-socket.ts";

export interface RestartsOptions {
  /** Resolves to the reason if the restart failed. */
  readonly restart: () => Promise<string | undefined>;
  readonly logger: () => Pick<Logger, "log">;
}

/** Accepts requests to restart once the gateway serves. */
export class Restarts {
  readonly #options: RestartsOptions;
  #listener: SocketListener | undefined;
  /** The program of the running processes. */
  #program: string | undefined;

  constructor(options: RestartsOptions) {
    this.#options = options;
  }

  start(dataDir: string): void {
    this.#program = readProgramState();
    try {
      const path = restartSocketPath(dataDir);
      this.#listener = listenForRestarts(path, () => this.restart());
    } catch (error) {
      const reason = errorCode(error) ?? "unknown";
      this.#log("warn", "`sluice restart` will not reach this gateway", { reason });
    }
  }

  /** Whether the program on disk differs from that of the running processes. */
  get hasChanged(): boolean {
    const now = readProgramState();
    return this.#program !== undefined && now !== undefined && now !== this.#program;
  }

  async restart(): Promise<string | undefined> {
    this.#log("info", "restarting");
    const program = readProgramState();
    const reason = await this.#options.restart();
    if (reason === undefined) this.#program = program;
    if (reason === undefined) this.#log("info", "restarted");
    else this.#log("error", "the restart failed", { reason });
    return reason;
  }

  stop(): void {
    this.#listener?.stop();
  }

  #log(...line: Parameters<Logger["log"]>): void {
    this.#options.logger().log(...line);
  }
}
