import type { Clock } from "../../domain/clock.ts";
import { write } from "node:fs";

/** The destination of log lines. */
export interface LogSink {
  write(line: string): void;
  /** Lines that could not be written since the start. */
  readonly droppedLines: number;
  configure(settings: Partial<LogSinkSettings>): void;
}

interface LogSinkSettings {
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

/** Descriptors of this process. */
export const standardOutput = 1;
export const standardError = 2;

export interface Output {
  /** A file descriptor. */
  readonly file: number;
  readonly bytes: Uint8Array;
  /** Called once, without an error if all bytes were written. */
  readonly onEnd: (error?: unknown) => void;
}

/** Writes some of the bytes and resolves to their number. */
type WriteSome = (file: number, bytes: Uint8Array) => Promise<number>;

/** Written together at most (PIPE_BUF): processes that share a pipe would mix longer writes. */
const batchBytes = 4_096;
/** Shortest time between two writes, unless a batch is full: many lines share a write. */
const gatherMs = 20;
/** Backoff before a non-blocking pipe that is full is retried. */
const busyMs = 20;
const lineEnd = 0x0a;

/**
 * Writes outputs in order, off the event loop: a pipe without a reader, a stopped terminal or a
 * hanging disk can block a write forever. The runtime's streams are no alternative: they block the
 * event loop on terminals and report success after a broken pipe. Only one write runs at a time, as
 * each occupies one of the runtime's few threads.
 */
export class OutputQueue {
  readonly #write: WriteSome;
  readonly #clock: Pick<Clock, "schedule">;
  readonly #outputs: Output[] = [];
  /** Files whose last line may be cut, by this process or by another one that writes there. */
  readonly #torn = new Set<number>();
  #waitingBytes = 0;
  #writing: Promise<void> | undefined;
  #endGathering = (): void => undefined;
  /** Callers that wait until the queue is empty. */
  #awaited = 0;

  constructor(clock: Pick<Clock, "schedule">, writeSome: WriteSome = writeToFile) {
    this.#clock = clock;
    this.#write = writeSome;
  }

  /** Bytes not written yet. */
  get waitingBytes(): number {
    return this.#waitingBytes;
  }

  push(output: Output): void {
    this.#outputs.push(output);
    this.#waitingBytes += output.bytes.length;
    if (this.#writing === undefined) this.#writing = this.#writeAll();
    else if (this.#waitingBytes >= batchBytes) this.#endGathering();
  }

  /** Resolves when the queue is empty. */
  async idle(): Promise<void> {
    this.#awaited += 1;
    this.#endGathering();
    while (this.#writing !== undefined) await this.#writing;
    this.#awaited -= 1;
  }

  async #writeAll(): Promise<void> {
    for (let batch = this.#takeBatch(); batch !== undefined; batch = this.#takeBatch()) {
      await this.#writeBatch(batch);
      await this.#gather();
    }
    this.#writing = undefined;
  }

  #gather(): Promise<void> | undefined {
    if (this.#awaited > 0 || this.#waitingBytes >= batchBytes) return undefined;
    return new Promise((resolve) => {
      const stop = this.#clock.schedule(resolve, gatherMs);
      this.#endGathering = () => {
        stop();
        resolve();
      };
    });
  }

  #takeBatch(): readonly Output[] | undefined {
    const [first] = this.#outputs;
    if (first === undefined) return undefined;
    // Preceded by a line end if the last line was cut short.
    let bytes = 1;
    const end = this.#outputs.findIndex((output) => {
      bytes += output.bytes.length;
      return output !== first && (output.file !== first.file || bytes > batchBytes);
    });
    return this.#outputs.splice(0, end === -1 ? this.#outputs.length : end);
  }

  async #writeBatch(outputs: readonly Output[]): Promise<void> {
    const file = outputs[0]?.file ?? standardError;
    const repair = this.#torn.delete(file) ? [Uint8Array.of(lineEnd)] : [];
    const bytes = Buffer.concat([...repair, ...outputs.map((output) => output.bytes)]);
    const { written, error } = await this.#writeWhole(file, bytes);
    if (error !== undefined) this.#torn.add(file);
    let end = repair.length;
    for (const output of outputs) {
      end += output.bytes.length;
      this.#waitingBytes -= output.bytes.length;
      output.onEnd(end <= written ? undefined : error);
    }
  }

  async #writeWhole(file: number, bytes: Uint8Array): Promise<Written> {
    let written = 0;
    while (written < bytes.length) {
      try {
        written += await this.#write(file, bytes.subarray(written));
      } catch (error) {
        if (!isBusy(error)) return { written, error: error ?? new Error("unknown failure") };
        await new Promise<void>((resolve) => void this.#clock.schedule(resolve, busyMs));
      }
    }
    return { written, error: undefined };
  }
}

interface Written {
  readonly written: number;
  /** Why the write stopped at that point. */
  readonly error: unknown;
}

function writeToFile(file: number, bytes: Uint8Array): Promise<number> {
  return new Promise((resolve, reject) => {
    write(file, bytes, 0, bytes.length, null, (error, written) => {
      if (error === null) resolve(written);
      else reject(error);
    });
  });
}

/** Another process may have made the pipe non-blocking. */
function isBusy(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "EAGAIN";
}
