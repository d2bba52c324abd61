import { chmodSync, rmSync } from "node:fs";
import { join } from "node:path";
import { errorCode } from "../../domain/system-files.ts";
import type { Logger } from "../../telemetry/log/logger.ts";
import { readProgramState } from "./program-state.ts";

/** Path of the parent's socket, on which commands of this user ask for a restart. */
function socketPath(dataDir: string): string {
  return join(dataDir, "parent.sock");
}

const done = "ok";

export interface RestartsOptions {
  /** Resolves to the reason if the restart failed. */
  readonly restart: () => Promise<string | undefined>;
  readonly logger: () => Pick<Logger, "log">;
}

/** Accepts requests to restart once the gateway serves. */
export class Restarts {
  readonly #options: RestartsOptions;
  #server: ReturnType<typeof listen> | undefined;
  #path: string | undefined;
  /** The program of the running processes. */
  #program: string | undefined;

  constructor(options: RestartsOptions) {
    this.#options = options;
  }

  start(dataDir: string): void {
    this.#program = readProgramState();
    try {
      this.#path = socketPath(dataDir);
      this.#server = listen(this.#path, () => this.restart());
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
    void this.#server?.stop(true);
    if (this.#server !== undefined && this.#path !== undefined) rmSync(this.#path, { force: true });
  }

  #log(...line: Parameters<Logger["log"]>): void {
    this.#options.logger().log(...line);
  }
}

/** A restart takes as long as its processes do. The types have this for ports alone. */
const untimed: object = { idleTimeout: 0 };

function listen(path: string, restart: () => Promise<string | undefined>) {
  rmSync(path, { force: true });
  const server = Bun.serve({
    unix: path,
    development: false,
    ...untimed,
    async fetch(request) {
      if (request.method !== "POST") return new Response();
      return new Response((await restart()) ?? done);
    },
  });
  chmodSync(path, 0o600);
  return server;
}

/** Whether the parent of a gateway runs on this data directory. */
export async function hasParent(dataDir: string): Promise<boolean> {
  try {
    await fetch("http://parent/", { unix: socketPath(dataDir) });
    return true;
  } catch {
    return false;
  }
}

/**
 * Resolves when the gateway has restarted, or to the reason why not. Rejects when no parent listens.
 */
export async function askForRestart(dataDir: string): Promise<string | undefined> {
  let text: string;
  try {
    // Without a timeout: a restart takes as long as its processes do.
    const response = await fetch("http://parent/restart", {
      method: "POST",
      unix: socketPath(dataDir),
      timeout: false,
    } as RequestInit);
    text = await response.text();
  } catch (error) {
    if (errorCode(error) === "ECONNRESET") return "the gateway ended meanwhile";
    throw error;
  }
  return text === done ? undefined : text;
}
