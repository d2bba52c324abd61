/** The image formats that every vision model accepts. */
export type ImageType = "image/png" | "image/jpeg" | "image/gif" | "image/webp";

/** Detects the format by the first bytes, since headers and file names are unreliable. */
export function imageTypeOf(bytes: Uint8Array): ImageType | undefined {
  if (has(bytes, 0, "\x89PNG\r\n\x1a\n")) return "image/png";
  if (has(bytes, 0, "\xff\xd8\xff")) return "image/jpeg";
  if (has(bytes, 0, "GIF87a") || has(bytes, 0, "GIF89a")) return "image/gif";
  if (has(bytes, 0, "RIFF") && has(bytes, 8, "WEBP")) return "image/webp";
  return undefined;
}

/** Whether `signature`, one byte per character, is at `offset`. */
function has(bytes: Uint8Array, offset: number, signature: string): boolean {
  const found = bytes.subarray(offset, offset + signature.length);
  return Buffer.from(signature, "latin1").equals(found);
}
