import { deserialize, serialize } from "bun:jsc";

/**
 * Frames of a link: four bytes of length (little-endian, of what follows), one of the type, one of
 * the encoding, four of a sequence number, then the body.
 */
export interface Frame {
  readonly type: FrameType;
  readonly encoding: Encoding;
  readonly sequence: number;
  readonly body: unknown;
}

/** `answer` and `failure` carry the sequence number of their `ask`; a `note` gets no answer. */
export type FrameType = "hello" | "ask" | "answer" | "failure" | "note";

/**
 * `json` for small messages on the way of a call (1.4 us both ways for 300 bytes); `clone`, five
 * times as dear, for values that JSON cannot hold: bytes, maps, infinity.
 */
export type Encoding = "json" | "clone";

/** A larger frame ends the link. */
export const longestFrameBytes = 64 * 1024 * 1024;

/** The peer sent bytes that are no frame. */
export class BrokenFrame extends Error {}

const headBytes = 10;
const types: readonly FrameType[] = ["hello", "ask", "answer", "failure", "note"];
const encodings: readonly Encoding[] = ["json", "clone"];
const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Throws a `RangeError` for a body that is too large. */
export function encodeFrame({ type, encoding, sequence, body }: Frame): Uint8Array {
  const bytes = encodeBody(encoding, body);
  const length = headBytes - 4 + bytes.length;
  if (length > longestFrameBytes) throw new RangeError(`a message of ${length} bytes is too long`);
  const frame = new Uint8Array(headBytes + bytes.length);
  const view = new DataView(frame.buffer);
  view.setUint32(0, length, true);
  view.setUint8(4, types.indexOf(type));
  view.setUint8(5, encodings.indexOf(encoding));
  view.setUint32(6, sequence, true);
  frame.set(bytes, headBytes);
  return frame;
}

/** Cuts a stream of bytes into frames. */
export class FrameReader {
  #parts: Uint8Array[] = [];
  #bytes = 0;
  /** Bytes that have to be there before the next frame is read. */
  #wanted = headBytes;

  /** Whether a part of a frame has arrived. */
  get isInFrame(): boolean {
    return this.#bytes > 0;
  }

  /** Returns the frames that are complete. Throws `BrokenFrame`; then the stream is of no use. */
  read(bytes: Uint8Array): readonly Frame[] {
    // The runtime may reuse its buffer after the callback.
    this.#parts.push(bytes.slice());
    this.#bytes += bytes.length;
    if (this.#bytes < this.#wanted) return [];
    const [first = bytes] = this.#parts;
    const all = this.#parts.length === 1 ? first : Buffer.concat(this.#parts, this.#bytes);
    const frames: Frame[] = [];
    let offset = 0;
    for (;;) {
      const left = all.subarray(offset);
      const frameBytes = left.length < headBytes ? headBytes : lengthOf(left) + 4;
      if (left.length < frameBytes) {
        this.#parts = left.length === 0 ? [] : [left];
        this.#bytes = left.length;
        this.#wanted = frameBytes;
        return frames;
      }
      frames.push(decodeFrame(left.subarray(0, frameBytes)));
      offset += frameBytes;
    }
  }
}

function lengthOf(frame: Uint8Array): number {
  const length = viewOf(frame).getUint32(0, true);
  if (length < headBytes - 4 || length > longestFrameBytes) {
    throw new BrokenFrame(`a frame claims ${length} bytes`);
  }
  return length;
}

function decodeFrame(frame: Uint8Array): Frame {
  const view = viewOf(frame);
  const type = types[view.getUint8(4)];
  const encoding = encodings[view.getUint8(5)];
  if (type === undefined || encoding === undefined) throw new BrokenFrame("an unknown frame");
  const sequence = view.getUint32(6, true);
  try {
    return { type, encoding, sequence, body: decodeBody(encoding, frame.subarray(headBytes)) };
  } catch (error) {
    throw new BrokenFrame("a body that cannot be read", { cause: error });
  }
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function encodeBody(encoding: Encoding, body: unknown): Uint8Array {
  // JSON has no undefined, which is the answer of most requests.
  if (body === undefined) return new Uint8Array(0);
  return encoding === "json"
    ? encoder.encode(JSON.stringify(body))
    : new Uint8Array(serialize(body));
}

function decodeBody(encoding: Encoding, bytes: Uint8Array): unknown {
  if (bytes.length === 0) return undefined;
  return encoding === "json" ? JSON.parse(decoder.decode(bytes)) : deserialize(bytes.slice());
}
