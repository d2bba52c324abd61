/** The image formats that every vision model takes. */
export type ImageType = "image/png" | "image/jpeg" | "image/gif" | "image/webp";

/** What the first bytes say; headers and names of files may say anything. */
export function imageTypeOf(bytes: Uint8Array): ImageType | undefined {
  if (has(bytes, 0, "\x89PNG\r\n\x1a\n")) return "image/png";
  if (has(bytes, 0, "\xff\xd8\xff")) return "image/jpeg";
  if (has(bytes, 0, "GIF87a") || has(bytes, 0, "GIF89a")) return "image/gif";
  if (has(bytes, 0, "RIFF") && has(bytes, 8, "WEBP")) return "image/webp";
  return undefined;
}

/** Whether the characters of `signature`, each one byte, lie at `offset`. */
function has(bytes: Uint8Array, offset: number, signature: string): boolean {
  const found = bytes.subarray(offset, offset + signature.length);
  return Buffer.from(signature, "latin1").equals(found);
}
