import { format } from "node:util";
import type { Clock } from "../../domain/clock.ts";
import { errorCode } from "../../domain/system-files.ts";
import { abortable } from "../../domain/waiting/wait.ts";
import {
  LogOutput,
  OutputQueue,
  standardError,
  standardOutput,
} from "../../telemetry/log/log-output.ts";
import type { StandardInput } from "../command.ts";

/** How long the last lines may wait for a reader. */
const lastLinesMs = 1_000;

/**
 * Standard output and standard error. A command waits for its readers until they close the stream;
 * a service continues without them.
 */
export class StandardStreams {
  readonly log: LogOutput;
  readonly #clock: Pick<Clock, "schedule">;
  readonly #queue: OutputQueue;
  readonly #onPrinted = (error: unknown): void => {
    if (error === undefined) return;
    const code = errorCode(error) ?? "unknown";
    if (code !== "EPIPE") this.#failure ??= code;
  };
  #outlivesReaders = false;
  #failure: string | undefined;

  constructor(clock: Pick<Clock, "schedule">) {
    this.#clock = clock;
    this.#queue = new OutputQueue(clock);
    this.log = new LogOutput(this.#queue, clock);
  }

  /**
   * The system's error code if results were lost. A reader that closed the stream is not a failure.
   */
  get failure(): string | undefined {
    return this.#failure;
  }

  /** From now on output that cannot be written at once waits in a bounded buffer, or is dropped. */
  outliveReaders(): void {
    this.#outlivesReaders = true;
    // Libraries use the console, and the runtime's own console blocks on its reader.
    const print = (...values: readonly unknown[]): void => this.print(format(...values));
    const report = (...values: readonly unknown[]): void => this.report(format(...values));
    Object.assign(console, { log: print, info: print, debug: print, warn: report, error: report });
  }

  print(line: string): void {
    if (this.#outlivesReaders) this.log.write(line, standardOutput);
    else this.#queue.append(standardOutput, line, this.#onPrinted);
  }

  report(line: string): void {
    if (this.#outlivesReaders) this.log.write(line);
    else this.#queue.append(standardError, line, ignore);
  }

  /** Writes bytes to standard output; resolves once they are accepted, or to false. */
  write(bytes: Uint8Array): Promise<boolean> {
    return new Promise((resolve) => {
      this.#queue.push(standardOutput, bytes, (error) => {
        this.#onPrinted(error);
        resolve(error === undefined);
      });
    });
  }

  /**
   * Resolves when everything is written, or to false when the reader was too slow. Services and
   * commands that are asked to end wait only briefly.
   */
  finish(asked: AbortSignal): Promise<boolean> {
    this.log.end();
    return new Promise((resolve) => {
      let stopTimer = (): void => undefined;
      const waitNoLonger = (): void => {
        stopTimer = this.#clock.schedule(() => resolve(false), lastLinesMs);
      };
      if (this.#outlivesReaders || asked.aborted) waitNoLonger();
      else asked.addEventListener("abort", waitNoLonger, { once: true });
      void this.#queue.idle().then(() => {
        stopTimer();
        asked.removeEventListener("abort", waitNoLonger);
        resolve(true);
      });
    });
  }
}

const ignore = (): void => undefined;

/** `signal` ends the reading of input that nobody types any more. */
export function createProcessInput(signal: AbortSignal): StandardInput {
  return {
    get isTerminal() {
      return process.stdin.isTTY;
    },
    chunks: () => chunksUntil(signal),
    setEcho: (isOn) => void process.stdin.setRawMode(!isOn),
  };
}

async function* chunksUntil(signal: AbortSignal): AsyncGenerator<Uint8Array> {
  const reader = Bun.stdin.stream().getReader();
  try {
    for (;;) {
      const { done, value } = await abortable(reader.read(), signal);
      if (done) return;
      yield value;
    }
  } finally {
    void reader.cancel().catch(() => undefined);
  }
}
