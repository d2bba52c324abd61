/** Base64 of little-endian float32 values, padded: what OpenAI's clients decode. */
export function toBase64(vector: readonly number[]): string {
  const bytes = new Uint8Array(vector.length * 4);
  const view = new DataView(bytes.buffer);
  vector.forEach((value, index) => view.setFloat32(index * 4, value, true));
  return Buffer.from(bytes.buffer).toString("base64");
}

export function toNumbers(base64: string): readonly number[] {
  const bytes = Buffer.from(base64, "base64");
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return Array.from({ length: Math.floor(bytes.byteLength / 4) }, (_, index) =>
    view.getFloat32(index * 4, true),
  );
}
