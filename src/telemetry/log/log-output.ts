import type { Clock } from "../../domain/clock.ts";
import { standardError, standardOutput, type OutputQueue } from "./output-queue.ts";

/** The destination of log lines. */
export interface LogSink {
  write(line: string): void;
  /** Lines that could not be written since the start. */
  readonly droppedLines: number;
  configure(settings: Partial<LogSinkSettings>): void;
}

export interface LogSinkSettings {
  /** Limit on bytes waiting for a slow reader; further lines are dropped. */
  readonly limitBytes: number;
  /** Formats the line that reports dropped lines. */
  readonly describeDropped: (lines: number) => string;
}

/** Discards all lines. */
export const noLog: LogSink = {
  write: () => undefined,
  droppedLines: 0,
  configure: () => undefined,
};

/** Interval between attempts to report dropped lines. */
const reportIntervalMs = 1_000;

/**
 * Writes log lines without ever holding up the process. Lines that fail, or exceed the limit, are
 * dropped and counted; once writing works again, one line reports the count.
 */
export class LogOutput implements LogSink {
  readonly #queue: OutputQueue;
  readonly #clock: Pick<Clock, "schedule">;
  #settings: LogSinkSettings = {
    limitBytes: 1024 * 1024,
    describeDropped: (lines) => `${lines} lines could not be written`,
  };
  #dropped = 0;
  #reported = 0;
  #isReporting = false;
  #stopTimer: (() => void) | undefined;
  #hasEnded = false;

  constructor(queue: OutputQueue, clock: Pick<Clock, "schedule">) {
    this.#queue = queue;
    this.#clock = clock;
  }

  get droppedLines(): number {
    return this.#dropped;
  }

  configure(settings: Partial<LogSinkSettings>): void {
    this.#settings = { ...this.#settings, ...settings };
  }

  write(line: string): void {
    this.#put(standardError, line);
  }

  /** Writes to standard output in the same way. */
  print(line: string): void {
    this.#put(standardOutput, line);
  }

  /** Reports dropped lines if that is possible now; does not retry. */
  end(): void {
    this.#hasEnded = true;
    this.#stopTimer?.();
    if (this.#dropped > this.#reported) this.#report();
  }

  #put(file: number, line: string): void {
    const bytes = Buffer.from(`${line}\n`);
    const isRoom = this.#queue.waitingBytes + bytes.length <= this.#settings.limitBytes;
    if (!isRoom) return this.#drop();
    const onEnd = (error?: unknown): void => (error === undefined ? undefined : this.#drop());
    this.#queue.push({ file, bytes, onEnd });
  }

  #drop(): void {
    this.#dropped += 1;
    this.#reportSoon();
  }

  #reportSoon(): void {
    if (this.#stopTimer !== undefined || this.#hasEnded) return;
    this.#stopTimer = this.#clock.schedule(() => {
      this.#stopTimer = undefined;
      // The count still grows while the reader is slow.
      if (this.#queue.waitingBytes > this.#settings.limitBytes / 2) this.#reportSoon();
      else this.#report();
    }, reportIntervalMs);
  }

  #report(): void {
    if (this.#isReporting) return;
    this.#isReporting = true;
    const dropped = this.#dropped;
    const line = this.#settings.describeDropped(dropped - this.#reported);
    const onEnd = (error?: unknown): void => {
      this.#isReporting = false;
      if (error === undefined) this.#reported = dropped;
      if (this.#dropped > this.#reported) this.#reportSoon();
    };
    this.#queue.push({ file: standardError, bytes: Buffer.from(`${line}\n`), onEnd });
  }
}
