/**
 * Header size of a frame in a spool file: magic number, CRC-32 and length, followed by the records
 * of one turn of the event loop. All numbers are little-endian; the CRC covers everything after it.
 */
export const headerBytes = 12;

/** A turn has a few kilobytes; a greater length means damage. */
export const longestPayloadBytes = 1024 * 1024;

/** The first and last byte never occur in UTF-8, so no text in a payload looks like a frame. */
export const magic = Uint8Array.of(0xf5, 0x53, 0x4c, 0xf6);
const crcAt = 4;
const lengthAt = 8;

/** Writes the header of a frame that fills the whole buffer. */
export function sealFrame(frame: Buffer): Buffer {
  frame.set(magic);
  frame.writeUInt32LE(frame.length - headerBytes, lengthAt);
  frame.writeUInt32LE(Bun.hash.crc32(frame.subarray(lengthAt)), crcAt);
  return frame;
}

/**
 * The end of the frame at an offset, after its payload. `incomplete`: this may be the start of a
 * frame whose rest is missing.
 */
export function endOfFrame(buffer: Buffer, offset: number): number | "incomplete" | "damaged" {
  const available = buffer.length - offset;
  for (let index = 0; index < magic.length && index < available; index += 1) {
    if (buffer[offset + index] !== magic[index]) return "damaged";
  }
  if (available < headerBytes) return "incomplete";
  const length = buffer.readUInt32LE(offset + lengthAt);
  if (length > longestPayloadBytes) return "damaged";
  const end = offset + headerBytes + length;
  if (end > buffer.length) return "incomplete";
  const crc = Bun.hash.crc32(buffer.subarray(offset + lengthAt, end));
  return crc === buffer.readUInt32LE(offset + crcAt) ? end : "damaged";
}
