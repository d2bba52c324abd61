import { write } from "node:fs";
import type { Clock } from "../../domain/clock.ts";

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
export type WriteSome = (file: number, bytes: Uint8Array) => Promise<number>;

/**
 * Limit on bytes of one file written together. The processes of a gateway share a pipe, in which
 * longer writes would be mixed up (PIPE_BUF).
 */
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
  /**
   * Files whose last line may be incomplete, cut by this process or by another one that writes
   * there.
   */
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
