import { crc32 } from "node:zlib";
import { brokenAnswer, UpstreamFailure } from "../../../domain/errors/upstream-failure.ts";
import { FrameHeaderReader, readUint32, type FrameHeaders } from "./event-stream-headers.ts";

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
  end(): void {
    if (this.#keptBytes > 0) this.#failure ??= brokenAnswer("the stream ended within a frame");
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
