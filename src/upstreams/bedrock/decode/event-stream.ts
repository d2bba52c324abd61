import { crc32 } from "node:zlib";
import { brokenAnswer, UpstreamFailure } from "../../../domain/errors/upstream-failure.ts";

/** One message of an `application/vnd.amazon.eventstream` body. */
export interface Frame {
  readonly headers: FrameHeaders;
  readonly payload: Uint8Array;
}

/** Total length, headers' length, and the checksum of both. */
const preludeBytes = 12;
const checksumBytes = 4;
const leastFrameBytes = preludeBytes + checksumBytes;
/** Largest frame that is read: the format's own limit for a message. */
const mostFrameBytes = 16 * 1024 * 1024;
/** Room for a frame that arrives in pieces; nearly all frames are smaller. */
const leastRoomBytes = 4 * 1024;

/**
 * Cuts a byte stream into frames, however it is split, and checks both checksums of each. A frame
 * that arrives in one piece is not copied. For others, the memory is at most a small multiple of
 * the received bytes, whatever the declared length.
 */
export class FrameReader {
  readonly #headers = new FrameHeaderReader();
  /** The received bytes of the incomplete frame. */
  #kept = new Uint8Array(0);
  #keptBytes = 0;
  /** How many bytes of it are needed to continue: first its prelude, then all of it. */
  #neededBytes = preludeBytes;
  #failure: UpstreamFailure | undefined;

  /** Set permanently once the bytes are not frames. */
  get failure(): UpstreamFailure | undefined {
    return this.#failure;
  }

  /** The frames that these bytes complete, up to the first damaged one. Does not throw. */
  push(bytes: Uint8Array): readonly Frame[] {
    const frames: Frame[] = [];
    if (this.#failure !== undefined) return frames;
    try {
      for (let at = 0; at < bytes.length;) {
        at = this.#keptBytes === 0 ? this.#begin(bytes, at, frames) : this.#goOn(bytes, at, frames);
      }
    } catch (error) {
      if (!(error instanceof UpstreamFailure)) throw error;
      this.#failure = error;
    }
    return frames;
  }

  /** Call at the end of the body: a frame that was cut short fails here. */
  end(): readonly Frame[] {
    if (this.#keptBytes > 0) this.#failure ??= brokenAnswer("the stream ended within a frame");
    return [];
  }

  /** Reads a frame without copying, or keeps its received bytes; returns where the next begins. */
  #begin(bytes: Uint8Array, start: number, frames: Frame[]): number {
    const availableBytes = bytes.length - start;
    this.#neededBytes = preludeBytes;
    if (availableBytes >= preludeBytes) {
      this.#neededBytes = readFrameLength(bytes, start);
      if (availableBytes >= this.#neededBytes) {
        const end = start + this.#neededBytes;
        frames.push(this.#readFrame(bytes, start, end));
        return end;
      }
    }
    this.#keep(bytes, start, bytes.length);
    return bytes.length;
  }

  #goOn(bytes: Uint8Array, start: number, frames: Frame[]): number {
    const end = Math.min(bytes.length, start + this.#neededBytes - this.#keptBytes);
    this.#keep(bytes, start, end);
    if (this.#keptBytes < this.#neededBytes) return end;
    if (this.#neededBytes === preludeBytes) {
      this.#neededBytes = readFrameLength(this.#kept, 0);
      return end;
    }
    frames.push(this.#readFrame(this.#kept, 0, this.#keptBytes));
    // The frame still uses the old buffer.
    this.#kept = new Uint8Array(0);
    this.#keptBytes = 0;
    return end;
  }

  #keep(bytes: Uint8Array, start: number, end: number): void {
    const keptBytes = this.#keptBytes + end - start;
    if (keptBytes > this.#kept.length) {
      const roomBytes = Math.max(this.#kept.length * 2, leastRoomBytes);
      const grown = new Uint8Array(Math.max(keptBytes, Math.min(this.#neededBytes, roomBytes)));
      grown.set(this.#kept.subarray(0, this.#keptBytes));
      this.#kept = grown;
    }
    this.#kept.set(bytes.subarray(start, end), this.#keptBytes);
    this.#keptBytes = keptBytes;
  }

  #readFrame(bytes: Uint8Array, start: number, end: number): Frame {
    const checksumAt = end - checksumBytes;
    checkSum(bytes, start, checksumAt);
    const headersAt = start + preludeBytes;
    const payloadAt = headersAt + readUint32(bytes, start + 4);
    return {
      headers: this.#headers.read(bytes, headersAt, payloadAt),
      payload: bytes.subarray(payloadAt, checksumAt),
    };
  }
}

/** The length in a frame's prelude, once the prelude is verified. */
function readFrameLength(bytes: Uint8Array, start: number): number {
  const frameBytes = readUint32(bytes, start);
  const headersBytes = readUint32(bytes, start + 4);
  if (frameBytes > mostFrameBytes) throw brokenAnswer("a frame claims to be too long");
  if (frameBytes < leastFrameBytes || headersBytes > frameBytes - leastFrameBytes) {
    throw brokenAnswer("the lengths of a frame contradict each other");
  }
  checkSum(bytes, start, start + 8);
  return frameBytes;
}

/** Checks that `end` has the CRC-32 (IEEE) of the bytes from `start`. */
function checkSum(bytes: Uint8Array, start: number, end: number): void {
  if (crc32(bytes.subarray(start, end)) !== readUint32(bytes, end)) {
    throw brokenAnswer("a frame fails its checksum");
  }
}

/** The headers of a frame that are used; headers of other types than text count as absent. */
interface FrameHeaders {
  /** `event`, `exception` (one that the service models) or `error` (of the transport). */
  readonly messageType: string | undefined;
  readonly eventType: string | undefined;
  readonly exceptionType: string | undefined;
  readonly errorCode: string | undefined;
  readonly errorMessage: string | undefined;
}

/**
 * Reads the headers of frames. In one stream they are nearly always the same bytes as those of the
 * previous frame, and comparing them is faster than reading them again.
 */
class FrameHeaderReader {
  #lastBytes: Uint8Array = new Uint8Array(0);
  #last: FrameHeaders = headersOf(new Map());

  /** Throws `UpstreamFailure` when the headers do not have exactly the declared length. */
  read(bytes: Uint8Array, start: number, end: number): FrameHeaders {
    if (this.#isSame(bytes, start, end)) return this.#last;
    this.#last = headersOf(readTexts(bytes, start, end));
    this.#lastBytes = bytes.slice(start, end);
    return this.#last;
  }

  #isSame(bytes: Uint8Array, start: number, end: number): boolean {
    const last = this.#lastBytes;
    if (end - start !== last.length) return false;
    for (let at = 0; at < last.length; at += 1) {
      if (bytes[start + at] !== last[at]) return false;
    }
    return true;
  }
}

/** Big-endian, unsigned. */
function readUint32(bytes: Uint8Array, at: number): number {
  return readUint16(bytes, at) * 0x10000 + readUint16(bytes, at + 2);
}

function readUint16(bytes: Uint8Array, at: number): number {
  return (bytes[at] ?? 0) * 0x100 + (bytes[at + 1] ?? 0);
}

function headersOf(texts: ReadonlyMap<string, string>): FrameHeaders {
  return {
    messageType: texts.get(":message-type"),
    eventType: texts.get(":event-type"),
    exceptionType: texts.get(":exception-type"),
    errorCode: texts.get(":error-code"),
    errorMessage: texts.get(":error-message"),
  };
}

/** Each header: length of the name, name, type of the value, value. */
function readTexts(bytes: Uint8Array, start: number, end: number): Map<string, string> {
  const texts = new Map<string, string>();
  const decoder = new TextDecoder();
  let at = start;
  while (at < end) {
    const typeAt = at + 1 + (bytes[at] ?? 0);
    if (typeAt >= end) throw malformed();
    const { type, valueEnd, textAt } = locateValue(bytes, typeAt, end);
    if (type === textType) {
      const name = decoder.decode(bytes.subarray(at + 1, typeAt));
      texts.set(name, decoder.decode(bytes.subarray(textAt, valueEnd)));
    }
    at = valueEnd;
  }
  return texts;
}

const byteArrayType = 6;
const textType = 7;
/** Bytes of a value by its type: true, false, 8 to 64 bits, then the two with a length, time, UUID. */
const valueBytes = [0, 0, 1, 2, 4, 8, undefined, undefined, 8, 16] as const;

interface LocatedValue {
  readonly type: number;
  readonly textAt: number;
  readonly valueEnd: number;
}

function locateValue(bytes: Uint8Array, typeAt: number, end: number): LocatedValue {
  const type = bytes[typeAt] ?? 0;
  const valueAt = typeAt + 1;
  const hasLength = type === byteArrayType || type === textType;
  if (hasLength && valueAt + 2 > end) throw malformed();
  const textAt = hasLength ? valueAt + 2 : valueAt;
  const length = hasLength ? readUint16(bytes, valueAt) : valueBytes[type];
  if (length === undefined || textAt + length > end) throw malformed();
  return { type, textAt, valueEnd: textAt + length };
}

function malformed(): UpstreamFailure {
  return brokenAnswer("the headers of a frame are invalid");
}
