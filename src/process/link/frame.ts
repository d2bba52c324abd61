import { deserialize, serialize } from "bun:jsc";

/**
 * Frames of a link: four bytes with the length of the rest (little-endian), one byte for the
 * encoding, then a list of messages.
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

/**
 * `json` is for small messages that a call waits for. `clone` costs five times as much and is for
 * values that JSON cannot hold: bytes, maps, infinity.
 */
export type Encoding = "json" | "clone";

/** A larger frame ends the link. */
export const longestFrameBytes = 64 * 1024 * 1024;

/** The peer sent bytes that are no frame. */
export class BrokenFrame extends Error {}

const lengthBytes = 4;
const headBytes = lengthBytes + 1;
const encodings: readonly Encoding[] = ["json", "clone"];
const types: readonly unknown[] = ["hello", "ask", "answer", "failure", "note"];
const encoder = new TextEncoder();
const decoder = new TextDecoder();
/** The most UTF-8 bytes of one code unit of a JavaScript string. */
const mostBytesOfUnit = 3;
/** A larger buffer is used for one frame only. */
const longestKeptBytes = 256 * 1024;

/** Throws a `RangeError` for a message that is too large. */
export function encodeClone(message: Message): Uint8Array {
  const body = new Uint8Array(serialize([message]));
  const frame = new Uint8Array(headBytes + body.length);
  frame.set(body, headBytes);
  return withHead(frame, "clone");
}

/** A note in JSON as a frame that can be sent over several links. */
export function encodeNote(kind: string, body: unknown): Uint8Array {
  const text = encoder.encode(`[${encodeJson(["note", 0, kind, body])}]`);
  const frame = new Uint8Array(headBytes + text.length);
  frame.set(text, headBytes);
  return withHead(frame, "json");
}

/** A message as a part of a JSON frame. */
export function encodeJson([type, sequence, kind, body]: Message): string {
  // In a list, JSON turns undefined into null.
  return JSON.stringify(body === undefined ? [type, sequence, kind] : [type, sequence, kind, body]);
}

/** Writes frames in JSON. */
export class JsonFrames {
  #buffer = new Uint8Array(4_096);

  /**
   * A frame of messages that are already encoded and joined by commas. It is valid until the next
   * one. Throws a `RangeError` if they are too large together.
   */
  encode(messages: string): Uint8Array {
    const most = headBytes + mostBytesOfUnit * messages.length + 2;
    const buffer = most > longestKeptBytes ? new Uint8Array(most) : this.#bufferOf(most);
    const { written } = encoder.encodeInto(`[${messages}]`, buffer.subarray(headBytes));
    return withHead(buffer.subarray(0, headBytes + written), "json");
  }

  #bufferOf(bytes: number): Uint8Array<ArrayBuffer> {
    if (this.#buffer.length < bytes) this.#buffer = new Uint8Array(2 * bytes);
    return this.#buffer;
  }
}

function withHead(frame: Uint8Array, encoding: Encoding): Uint8Array {
  const length = frame.length - lengthBytes;
  if (length > longestFrameBytes) throw new RangeError(`a message of ${length} bytes is too long`);
  for (let index = 0; index < lengthBytes; index += 1) frame[index] = length >>> (8 * index);
  frame[lengthBytes] = encodings.indexOf(encoding);
  return frame;
}

/** Cuts a stream of bytes into frames. */
export class FrameReader {
  #parts: Uint8Array[] = [];
  #bytes = 0;
  /** Bytes that must have arrived before the next frame is read. */
  #wanted = headBytes;

  /** Whether a frame has arrived only partly. */
  get isInFrame(): boolean {
    return this.#parts.length > 0;
  }

  /**
   * Passes on the messages of each complete frame. Throws `BrokenFrame`, after which the stream is
   * unusable.
   */
  read(bytes: Uint8Array, hear: (message: Message, encoding: Encoding) => void): void {
    const all = this.#join(bytes);
    if (all === undefined) return;
    let left = all;
    for (;;) {
      const frameBytes = left.length < headBytes ? headBytes : lengthOf(left) + lengthBytes;
      if (left.length < frameBytes) return this.#keep(left, frameBytes);
      const encoding = encodings[left[lengthBytes] ?? encodings.length];
      if (encoding === undefined) throw new BrokenFrame("an unknown frame");
      for (const message of messagesOf(left.subarray(headBytes, frameBytes), encoding)) {
        hear(message, encoding);
      }
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
  if (length < headBytes - lengthBytes || length > longestFrameBytes) {
    throw new BrokenFrame(`a frame claims ${length} bytes`);
  }
  return length;
}

function messagesOf(body: Uint8Array, encoding: Encoding): readonly Message[] {
  let messages: unknown;
  try {
    messages = encoding === "json" ? JSON.parse(decoder.decode(body)) : deserialize(body.slice());
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
