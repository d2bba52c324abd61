import { brokenAnswer, type UpstreamFailure } from "../../../domain/errors/upstream-failure.ts";

/** The headers of a frame that are used; headers of other types than text count as absent. */
export interface FrameHeaders {
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
export class FrameHeaderReader {
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
export function readUint32(bytes: Uint8Array, at: number): number {
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
