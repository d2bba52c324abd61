import { encodeClone, encodeJson, JsonFrames, type Encoding, type Message } from "./frame.ts";

/** A stream of bytes to the other side. Bytes that it did not take are sent after `drained`. */
export interface ByteChannel {
  /** Returns how many bytes were taken. The caller may change them afterwards. */
  write(bytes: Uint8Array): number;
  close(): void;
}

/** Runs something at the end of the current turn of the event loop. */
export type Later = (run: () => void) => unknown;

export interface OutboxOptions {
  readonly channel: ByteChannel;
  /** Default: `setImmediate`. */
  readonly later?: Later | undefined;
  /** Runs something within a few milliseconds. */
  readonly soon: Later;
  /** Called before the messages of a turn are sent; may add more. */
  readonly beforeFlush?: (() => void) | undefined;
}

/** Most bytes that wait for the other side; beyond it the outbox is full. */
const waitingLimitBytes = 64 * 1024 * 1024;
/**
 * A longer JSON message becomes a frame of its own. Measured in code units of a JavaScript string.
 */
const longestJoined = 64 * 1024;

/** Messages that wait for the end of the current turn, or for the channel. */
export class Outbox {
  readonly #channel: ByteChannel;
  readonly #later: Later;
  readonly #soon: Later;
  readonly #beforeFlush: () => void;
  readonly #frames = new JsonFrames();
  /** Frames to send before the messages in `#json`. */
  #waiting: Uint8Array[] = [];
  #waitingBytes = 0;
  /** Messages that become one frame. */
  #json = "";
  #isFlushPlanned = false;
  #isFlushPlannedSoon = false;
  /** The channel took less than it was given; `drained` follows. */
  #hasPaused = false;
  /** The first of `#waiting` is the rest of a frame that the channel has partly taken. */
  #hasRest = false;
  #isFlushing = false;

  constructor({ channel, later = setImmediate, soon, beforeFlush }: OutboxOptions) {
    this.#channel = channel;
    this.#later = later;
    this.#soon = soon;
    this.#beforeFlush = beforeFlush ?? (() => undefined);
  }

  get isFull(): boolean {
    return this.#waitingBytes + this.#json.length > waitingLimitBytes;
  }

  /** Throws a `RangeError` for a message that is too large. */
  add(message: Message, encoding: Encoding): void {
    this.#put(message, encoding);
    if (this.#isFlushPlanned || this.#hasPaused) return;
    this.#isFlushPlanned = true;
    this.#later(() => this.flush());
  }

  /** Adds a message that waits for the next one, at most a few milliseconds. */
  addSoon(message: Message, encoding: Encoding): void {
    this.#put(message, encoding);
    if (this.#isFlushPlanned || this.#isFlushPlannedSoon || this.#hasPaused) return;
    this.#isFlushPlannedSoon = true;
    this.#soon(() => {
      this.#isFlushPlannedSoon = false;
      this.flush();
    });
  }

  /** Sends a frame before everything that waits: at once, or in the write that begins now. */
  addFirst(frame: Uint8Array): void {
    let rest = frame;
    if (!this.#isFlushing && !this.#hasRest) {
      rest = frame.subarray(this.#channel.write(frame));
      if (rest.length === 0) return;
      this.#hasPaused = true;
      this.#hasRest = true;
      this.#waiting.unshift(rest);
    } else this.#waiting.splice(this.#hasRest ? 1 : 0, 0, frame);
    this.#waitingBytes += rest.length;
  }

  drained(): void {
    this.#hasPaused = false;
    this.flush();
  }

  flush(): void {
    this.#isFlushPlanned = false;
    if (this.#hasPaused || (this.#waiting.length === 0 && this.#json === "")) return;
    this.#isFlushing = true;
    this.#beforeFlush();
    this.#isFlushing = false;
    if (this.#waiting.length > 0) {
      this.#seal();
      this.#write(Buffer.concat(this.#waiting));
    } else this.#write(this.#takeJson());
  }

  clear(): void {
    this.#waiting = [];
    this.#waitingBytes = 0;
    this.#json = "";
  }

  #put(message: Message, encoding: Encoding): void {
    if (encoding === "clone") this.#push(encodeClone(message));
    else this.#addJson(encodeJson(message));
  }

  #addJson(text: string): void {
    if (this.#json.length + text.length > longestJoined) this.#seal();
    if (text.length > longestJoined) this.#push(this.#frames.encode(text).slice());
    else this.#json = this.#json === "" ? text : `${this.#json},${text}`;
  }

  #push(frame: Uint8Array): void {
    this.#seal();
    this.#waiting.push(frame);
    this.#waitingBytes += frame.length;
  }

  /** Closes the current JSON frame: later messages follow it. */
  #seal(): void {
    if (this.#json === "") return;
    const frame = this.#takeJson().slice();
    this.#waiting.push(frame);
    this.#waitingBytes += frame.length;
  }

  #takeJson(): Uint8Array {
    const frame = this.#frames.encode(this.#json);
    this.#json = "";
    return frame;
  }

  #write(bytes: Uint8Array): void {
    const taken = this.#channel.write(bytes);
    this.#hasPaused = taken < bytes.length;
    this.#hasRest = this.#hasPaused;
    this.#waitingBytes = bytes.length - taken;
    this.#waiting = this.#hasPaused ? [bytes.slice(taken)] : [];
  }
}
