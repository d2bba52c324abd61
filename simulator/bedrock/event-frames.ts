/**
 * Frames of `application/vnd.amazon.eventstream`: a prelude of two lengths and a checksum, headers,
 * a payload, and a checksum of everything before it. All numbers are big-endian.
 */
import { crc32 } from "node:zlib";

/** Header types of the format: without dates, UUIDs and shorter numbers. */
type HeaderValue = string | boolean | number | bigint | Uint8Array;
type FrameHeaders = Readonly<Record<string, HeaderValue>>;

export const preludeLengthBytes = 12;
export const checksumLengthBytes = 4;

const utf8 = new TextEncoder();

/** Encodes one frame; numbers take 32 bits, bigints 64. */
export function encodeFrame(headers: FrameHeaders, payload: Uint8Array): Uint8Array<ArrayBuffer> {
  const headerBytes = Buffer.concat(
    Object.entries(headers).map(([name, value]) => encodeHeader(name, value)),
  );
  const payloadAt = preludeLengthBytes + headerBytes.length;
  const frame = new Uint8Array(payloadAt + payload.length + checksumLengthBytes);
  frame.set(encodePrelude(frame.length, headerBytes.length));
  frame.set(headerBytes, preludeLengthBytes);
  frame.set(payload, payloadAt);
  return sealFrame(frame);
}

/** Writes the checksum at the end of the frame, and returns the same bytes. */
export function sealFrame(frame: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  const checksumAt = frame.length - checksumLengthBytes;
  new DataView(frame.buffer).setUint32(checksumAt, crc32(frame.subarray(0, checksumAt)));
  return frame;
}

/** A part of the answer, for example `contentBlockDelta`. */
export function eventFrame(
  type: string,
  json: string,
  extraHeaders: FrameHeaders = {},
): Uint8Array<ArrayBuffer> {
  return jsonFrame({ ":event-type": type, ...extraHeaders }, "event", json);
}

/** An event that is not in the service's model, with headers of every type. */
export function unknownEvent(note: string): Uint8Array<ArrayBuffer> {
  return eventFrame("contentBlockNote", JSON.stringify({ note }), {
    "is-known": false,
    "is-final": true,
    revision: 7,
    serial: 9_007_199_254_740_993n,
    digest: new Uint8Array([0, 1, 254, 255]),
  });
}

/** An exception that the service models for the stream, for example `throttlingException`. */
export function exceptionFrame(type: string, json: string): Uint8Array<ArrayBuffer> {
  return jsonFrame({ ":exception-type": type }, "exception", json);
}

/** A failure of the transport, which is not in the service's model. It has no payload. */
export function errorFrame(code: string, message: string): Uint8Array<ArrayBuffer> {
  const headers = { ":error-code": code, ":error-message": message, ":message-type": "error" };
  return encodeFrame(headers, new Uint8Array(0));
}

/** A prelude with a correct checksum, even for wrong lengths. */
export function encodePrelude(
  totalLengthBytes: number,
  headersLengthBytes: number,
): Uint8Array<ArrayBuffer> {
  const prelude = new Uint8Array(preludeLengthBytes);
  const view = new DataView(prelude.buffer);
  view.setUint32(0, totalLengthBytes);
  view.setUint32(4, headersLengthBytes);
  view.setUint32(8, crc32(prelude.subarray(0, 8)));
  return prelude;
}

function jsonFrame(
  typeHeaders: FrameHeaders,
  messageType: "event" | "exception",
  json: string,
): Uint8Array<ArrayBuffer> {
  const headers = {
    ...typeHeaders,
    ":content-type": "application/json",
    ":message-type": messageType,
  };
  return encodeFrame(headers, utf8.encode(json));
}

function encodeHeader(name: string, value: HeaderValue): Buffer {
  const nameBytes = utf8.encode(name);
  return Buffer.concat([Uint8Array.of(nameBytes.length), nameBytes, encodeValue(value)]);
}

/** The number of the type, then the value. */
function encodeValue(value: HeaderValue): Buffer {
  if (typeof value === "boolean") return Buffer.of(value ? 0 : 1);
  if (typeof value === "number") {
    const bytes = Buffer.alloc(5, 4);
    bytes.writeInt32BE(value, 1);
    return bytes;
  }
  if (typeof value === "bigint") {
    const bytes = Buffer.alloc(9, 5);
    bytes.writeBigInt64BE(value, 1);
    return bytes;
  }
  const bytes = typeof value === "string" ? utf8.encode(value) : value;
  const head = Buffer.alloc(3, typeof value === "string" ? 7 : 6);
  head.writeUInt16BE(bytes.length, 1);
  return Buffer.concat([head, bytes]);
}
