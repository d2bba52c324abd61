import { encodeFrame, type Message } from "./frame.ts";

/** A stream of bytes to the other side. Bytes that it did not take are sent after `drained`. */
export interface ByteChannel {
  /** Returns how many bytes were taken. The caller may change them afterwards. */
  write(bytes: Uint8Array): number;
  close(): void;
}

/** Runs something at the end of the current turn of the event loop. */
export type Later = (run: () => void) => unknown;

/** Most bytes that wait for the other side; beyond it the outbox is full. */
const waitingLimitBytes = 64 * 1024 * 1024;

/** Messages that wait for the end of the current turn, or for the channel. */
export class Outbox {
  readonly #channel: ByteChannel;
  readonly #later: Later;
  #waiting: Uint8Array[] = [];
  #waitingBytes = 0;
  #isFlushPlanned = false;
  /** The channel took less than it was given; `drained` follows. */
  #hasPaused = false;

  constructor(channel: ByteChannel, later: Later = setImmediate) {
    this.#channel = channel;
    this.#later = later;
  }

  get isFull(): boolean {
    return this.#waitingBytes > waitingLimitBytes;
  }

  /** Throws a `RangeError` for a message that is too large. */
  add(message: Message): void {
    const frame = encodeFrame([message]);
    this.#waiting.push(frame);
    this.#waitingBytes += frame.length;
    if (this.#isFlushPlanned || this.#hasPaused) return;
    this.#isFlushPlanned = true;
    this.#later(() => this.flush());
  }

  drained(): void {
    this.#hasPaused = false;
    this.flush();
  }

  flush(): void {
    this.#isFlushPlanned = false;
    if (this.#hasPaused || this.#waiting.length === 0) return;
    const bytes = Buffer.concat(this.#waiting);
    const taken = this.#channel.write(bytes);
    this.#hasPaused = taken < bytes.length;
    this.#waitingBytes = bytes.length - taken;
    this.#waiting = this.#hasPaused ? [bytes.subarray(taken)] : [];
  }

  clear(): void {
    this.#waiting = [];
    this.#waitingBytes = 0;
  }
}
