/**
 * Header size of one record in a spool file: magic, CRC-32 and length, followed by JSON as UTF-8.
 * All numbers are little-endian; the CRC covers length and JSON.
 */
export const headerBytes = 12;

/** Records have a few hundred bytes; a greater length is damage. */
export const longestPayloadBytes = 1024 * 1024;

/** The first and last byte never occur in UTF-8, so no payload looks like a frame. */
export const magic = Uint8Array.of(0xf5, 0x53, 0x4c, 0xf6);
const crcAt = 4;
const lengthAt = 8;

/** Encodes frames into one buffer, which the next frame overwrites. */
export class FrameEncoder {
  #buffer = Buffer.alloc(16 * 1024);

  /** The result is valid until the next call. Throws a `RangeError` for an overlong text. */
  encode(text: string): Uint8Array {
    const mostBytes = headerBytes + text.length * 3;
    if (this.#buffer.length < mostBytes) this.#buffer = Buffer.alloc(mostBytes);
    const buffer = this.#buffer;
    const length = buffer.write(text, headerBytes);
    if (length > longestPayloadBytes) throw new RangeError(`a record of ${length} bytes`);
    const end = headerBytes + length;
    buffer.set(magic);
    buffer.writeUInt32LE(length, lengthAt);
    buffer.writeUInt32LE(Bun.hash.crc32(buffer.subarray(lengthAt, end)), crcAt);
    return buffer.subarray(0, end);
  }
}

export type DecodedFrame =
  | { readonly type: "whole"; readonly text: string; readonly bytes: number }
  /** Possibly the start of a frame whose rest is missing. */
  | { readonly type: "incomplete" }
  | { readonly type: "damaged" };

/** Decodes the frame at an offset. */
export function decodeFrame(buffer: Buffer, offset: number): DecodedFrame {
  const available = buffer.length - offset;
  for (let index = 0; index < Math.min(available, magic.length); index += 1) {
    if (buffer[offset + index] !== magic[index]) return { type: "damaged" };
  }
  if (available < headerBytes) return { type: "incomplete" };
  const length = buffer.readUInt32LE(offset + lengthAt);
  if (length > longestPayloadBytes) return { type: "damaged" };
  const bytes = headerBytes + length;
  if (available < bytes) return { type: "incomplete" };
  const covered = buffer.subarray(offset + lengthAt, offset + bytes);
  if (Bun.hash.crc32(covered) !== buffer.readUInt32LE(offset + crcAt)) return { type: "damaged" };
  return {
    type: "whole",
    text: buffer.toString("utf8", offset + headerBytes, offset + bytes),
    bytes,
  };
}
