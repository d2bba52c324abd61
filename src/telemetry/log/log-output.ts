import { fstatSync, write } from "node:fs";
import type { Clock } from "../../domain/clock.ts";

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
  readonly #onWritten: OnEnd = (error, lines) =>
    error === undefined ? undefined : this.#drop(lines);
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

  write(line: string, file = standardError): void {
    if (this.#queue.waitingBytes + line.length >= this.#settings.limitBytes) this.#drop(1);
    else this.#queue.append(file, line, this.#onWritten);
  }

  /** Reports dropped lines if that is possible now; does not retry. */
  end(): void {
    this.#hasEnded = true;
    this.#stopTimer?.();
    if (this.#dropped > this.#reported) this.#report();
  }

  #drop(lines: number): void {
    this.#dropped += lines;
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
    this.#queue.append(standardError, line, (error) => {
      this.#isReporting = false;
      if (error === undefined) this.#reported = dropped;
      if (this.#dropped > this.#reported) this.#reportSoon();
    });
  }
}

/** Descriptors of this process. */
export const standardOutput = 1;
export const standardError = 2;

/** Called once for what was written together: without an error if all of it was. */
type OnEnd = (error: unknown, lostLines: number) => void;

/** What is written together. */
interface Batch {
  /** A file descriptor. */
  readonly file: number;
  readonly content: Buffer;
  /** How many bytes of it are used. */
  bytes: number;
  readonly takesLines: boolean;
  readonly onEnd: OnEnd;
}

/** The system's files, by descriptor. */
interface OutputFiles {
  /** Writes some of the bytes and resolves to their number. */
  write(file: number, bytes: Uint8Array): Promise<number>;
  isRegular(file: number): boolean;
}

/** Of lines written together at most (PIPE_BUF): processes that share a pipe would mix longer writes. */
const pipeBatchBytes = 4_096;
/** The system does not mix writes to a file with those of other processes, however long they are. */
const fileBatchBytes = 64 * 1024;
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
  readonly #files: OutputFiles;
  readonly #clock: Pick<Clock, "schedule">;
  readonly #batches: Batch[] = [];
  readonly #batchBytes = new Map<number, number>();
  /** The memory of a batch that was written, for the next one. */
  #spare: Buffer | undefined;
  /** Files whose last line may be cut, by this process or by another one that writes there. */
  readonly #torn = new Set<number>();
  #waitingBytes = 0;
  #writing: Promise<void> | undefined;
  #endGathering = (): void => undefined;
  /** Callers that wait until the queue is empty. */
  #awaited = 0;

  constructor(clock: Pick<Clock, "schedule">, files: OutputFiles = systemFiles) {
    this.#clock = clock;
    this.#files = files;
  }

  /** Bytes not written yet. */
  get waitingBytes(): number {
    return this.#waitingBytes;
  }

  /** Writes a line, together with others that have the same `onEnd`. */
  append(file: number, line: string, onEnd: OnEnd): void {
    const bytes = Buffer.byteLength(line) + 1;
    const last = this.#batches[this.#batches.length - 1];
    const isOfLast = last?.file === file && last.onEnd === onEnd && last.takesLines;
    // Less than the most, as the end of a line that was cut short may come before it.
    const hasRoom = isOfLast && last.bytes + bytes < last.content.length;
    const batch = hasRoom ? last : this.#newBatch(file, bytes, onEnd);
    batch.content.write(line, batch.bytes);
    batch.bytes += bytes;
    batch.content[batch.bytes - 1] = lineEnd;
    this.#start(bytes);
  }

  #newBatch(file: number, leastBytes: number, onEnd: OnEnd): Batch {
    const bytes = Math.max(leastBytes, this.#mostBytes(file));
    const content = this.#spare?.length === bytes ? this.#spare : Buffer.allocUnsafeSlow(bytes);
    this.#spare = undefined;
    const batch = { file, content, bytes: 0, takesLines: true, onEnd };
    this.#batches.push(batch);
    return batch;
  }

  /** Writes bytes by themselves. */
  push(file: number, content: Uint8Array, onEnd: OnEnd): void {
    const { buffer, byteOffset, byteLength: bytes } = content;
    const batch = { content: Buffer.from(buffer, byteOffset, bytes), bytes, takesLines: false };
    this.#batches.push({ file, onEnd, ...batch });
    this.#start(bytes);
  }

  /** Resolves when the queue is empty. */
  async idle(): Promise<void> {
    this.#awaited += 1;
    this.#endGathering();
    while (this.#writing !== undefined) await this.#writing;
    this.#awaited -= 1;
  }

  #start(bytes: number): void {
    this.#waitingBytes += bytes;
    if (this.#writing === undefined) this.#writing = this.#writeAll();
    else if (this.#batches.length > 1) this.#endGathering();
  }

  async #writeAll(): Promise<void> {
    for (let next = this.#batches.shift(); next !== undefined; next = this.#batches.shift()) {
      await this.#writeBatch(next);
      await this.#gather();
    }
    this.#writing = undefined;
  }

  #gather(): Promise<void> | undefined {
    if (this.#awaited > 0 || this.#batches.length > 1) return undefined;
    return new Promise((resolve) => {
      const stop = this.#clock.schedule(resolve, gatherMs);
      this.#endGathering = () => {
        stop();
        resolve();
      };
    });
  }

  #mostBytes(file: number): number {
    let most = this.#batchBytes.get(file);
    if (most === undefined) {
      most = this.#files.isRegular(file) ? fileBatchBytes : pipeBatchBytes;
      this.#batchBytes.set(file, most);
    }
    return most;
  }

  async #writeBatch({ file, content, bytes, takesLines, onEnd }: Batch): Promise<void> {
    const repair = Buffer.from(this.#torn.delete(file) ? "\n" : "");
    const text = content.subarray(0, bytes);
    const whole = repair.length === 0 ? text : Buffer.concat([repair, text]);
    let written = 0;
    let failure: unknown;
    while (written < whole.length && failure === undefined) {
      try {
        written += await this.#files.write(file, whole.subarray(written));
      } catch (error) {
        if (!isBusy(error)) failure = error ?? new Error("unknown failure");
        else await new Promise<void>((resolve) => void this.#clock.schedule(resolve, busyMs));
      }
    }
    this.#waitingBytes -= bytes;
    if (failure !== undefined) this.#torn.add(file);
    const lost = whole.subarray(Math.max(written, repair.length));
    onEnd(failure, lost.filter((byte) => byte === lineEnd).length);
    if (takesLines) this.#spare = content;
  }
}

const systemFiles: OutputFiles = {
  write: (file, bytes) =>
    new Promise((resolve, reject) => {
      write(file, bytes, 0, bytes.length, null, (error, written) => {
        if (error === null) resolve(written);
        else reject(error);
      });
    }),
  isRegular(file) {
    try {
      return fstatSync(file).isFile();
    } catch {
      // It is closed, and the write tells so.
      return false;
    }
  },
};

/** Another process may have made the pipe non-blocking. */
function isBusy(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "EAGAIN";
}
