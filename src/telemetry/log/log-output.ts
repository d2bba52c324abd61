import type { Clock } from "../../domain/clock.ts";
import { standardError, standardOutput, type OutputQueue } from "./output-queue.ts";

/** Where the lines of a log go. */
export interface LogSink {
  write(line: string): void;
  /** Lines that could not be written, since the start. */
  readonly droppedLines: number;
  configure(settings: Partial<LogSinkSettings>): void;
}

export interface LogSinkSettings {
  /** Most bytes that wait for a slow reader; a line beyond is dropped. */
  readonly limitBytes: number;
  /** The line that tells how many were dropped. */
  readonly describeDropped: (lines: number) => string;
}

/** A log that nobody wants. */
export const noLog: LogSink = {
  write: () => undefined,
  droppedLines: 0,
  configure: () => undefined,
};

/** How often it is tried to tell of dropped lines. */
const tellIntervalMs = 1_000;

/**
 * The lines of a process that runs on whatever becomes of its log. What cannot be written, or would
 * wait behind too much, is dropped and counted; when writing works again, one line tells the count.
 */
export class LogOutput implements LogSink {
  readonly #queue: OutputQueue;
  readonly #clock: Pick<Clock, "schedule">;
  #settings: LogSinkSettings = {
    limitBytes: 1024 * 1024,
    describeDropped: (lines) => `${lines} lines could not be written`,
  };
  #dropped = 0;
  #told = 0;
  #isTelling = false;
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

  /** On standard output, with the same patience. */
  print(line: string): void {
    this.#put(standardOutput, line);
  }

  /** Tells what was dropped, if that is possible now, and does not try again. */
  end(): void {
    this.#hasEnded = true;
    this.#stopTimer?.();
    if (this.#dropped > this.#told) this.#tell();
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
    this.#tellSoon();
  }

  #tellSoon(): void {
    if (this.#stopTimer !== undefined || this.#hasEnded) return;
    this.#stopTimer = this.#clock.schedule(() => {
      this.#stopTimer = undefined;
      // While a reader is slow the count still grows.
      if (this.#queue.waitingBytes > this.#settings.limitBytes / 2) this.#tellSoon();
      else this.#tell();
    }, tellIntervalMs);
  }

  #tell(): void {
    if (this.#isTelling) return;
    this.#isTelling = true;
    const dropped = this.#dropped;
    const line = this.#settings.describeDropped(dropped - this.#told);
    const onEnd = (error?: unknown): void => {
      this.#isTelling = false;
      if (error === undefined) this.#told = dropped;
      if (this.#dropped > this.#told) this.#tellSoon();
    };
    this.#queue.push({ file: standardError, bytes: Buffer.from(`${line}\n`), onEnd });
  }
}
