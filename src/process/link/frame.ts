import { deserialize, serialize } from "bun:jsc";

/**
 * Frames of a link: four bytes with the length of the rest (little-endian), then a list of messages
 * as a clone, which holds bytes, maps and infinity, too.
 */
export type Message = readonly [
  type: MessageType,
  /** The number of an ask, which its answer repeats; 0 for all others. */
  sequence: number,
  /** The kind of an ask or a note; otherwise empty. */
  kind: string,
  body?: unknown,
];

/** `answer` and `failure` carry the sequence number of their `ask`; a `note` gets no answer. */
export type MessageType = "hello" | "ask" | "answer" | "failure" | "note";

/** A larger frame ends the link. */
export const longestFrameBytes = 64 * 1024 * 1024;

/** The peer sent bytes that are no frame. */
export class BrokenFrame extends Error {}

const lengthBytes = 4;
const types: readonly unknown[] = ["hello", "ask", "answer", "failure", "note"];

/** Throws a `RangeError` for messages that are too large. */
export function encodeFrame(messages: readonly unknown[]): Uint8Array {
  const body = new Uint8Array(serialize(messages));
  const { length } = body;
  if (length > longestFrameBytes) throw new RangeError(`a message of ${length} bytes is too long`);
  const frame = new Uint8Array(lengthBytes + length);
  for (let index = 0; index < lengthBytes; index += 1) frame[index] = length >>> (8 * index);
  frame.set(body, lengthBytes);
  return frame;
}

/** Cuts a stream of bytes into frames. */
export class FrameReader {
  #parts: Uint8Array[] = [];
  #bytes = 0;
  /** Bytes that must have arrived before the next frame is read. */
  #wanted = lengthBytes;

  /** Whether a frame has arrived only partly. */
  get isInFrame(): boolean {
    return this.#parts.length > 0;
  }

  /**
   * Passes on the messages of each complete frame. Throws `BrokenFrame`, after which the stream is
   * unusable.
   */
  read(bytes: Uint8Array, hear: (message: Message) => void): void {
    const all = this.#join(bytes);
    if (all === undefined) return;
    let left = all;
    for (;;) {
      const frameBytes = lengthBytes + (left.length < lengthBytes ? 0 : lengthOf(left));
      if (left.length < lengthBytes || left.length < frameBytes) {
        return this.#keep(left, frameBytes);
      }
      for (const message of messagesOf(left.subarray(lengthBytes, frameBytes))) hear(message);
      left = left.subarray(frameBytes);
    }
  }

  /** Undefined while a frame is incomplete. */
  #join(bytes: Uint8Array): Uint8Array | undefined {
    if (this.#parts.length === 0) return bytes;
    this.#keepPart(bytes);
    if (this.#bytes < this.#wanted) return undefined;
    const all = Buffer.concat(this.#parts, this.#bytes);
    this.#parts = [];
    this.#bytes = 0;
    return all;
  }

  #keep(left: Uint8Array, wanted: number): void {
    this.#wanted = wanted;
    if (left.length > 0) this.#keepPart(left);
  }

  #keepPart(bytes: Uint8Array): void {
    // The runtime may reuse its buffer after the callback.
    this.#parts.push(bytes.slice());
    this.#bytes += bytes.length;
  }
}

function lengthOf(frame: Uint8Array): number {
  let length = 0;
  for (let index = lengthBytes - 1; index >= 0; index -= 1) {
    length = length * 256 + (frame[index] ?? 0);
  }
  if (length === 0 || length > longestFrameBytes) {
    throw new BrokenFrame(`a frame claims ${length} bytes`);
  }
  return length;
}

function messagesOf(body: Uint8Array): readonly Message[] {
  let messages: unknown;
  try {
    messages = deserialize(body.slice());
  } catch (error) {
    throw new BrokenFrame("a body that cannot be read", { cause: error });
  }
  if (!Array.isArray(messages) || !messages.every(isMessage)) {
    throw new BrokenFrame("an unknown message");
  }
  return messages;
}

function isMessage(value: unknown): value is Message {
  return (
    Array.isArray(value) &&
    types.includes(value[0]) &&
    typeof value[1] === "number" &&
    typeof value[2] === "string"
  );
}
