import { releaseBytes } from "./release-bytes.ts";

/** One run of bytes. The chunks must not be read afterwards: a single one is it. */
export function joinChunks(chunks: readonly Uint8Array[], size: number): Uint8Array {
  const [only] = chunks;
  if (only !== undefined && chunks.length === 1) return only;
  const joined = new Uint8Array(size);
  let position = 0;
  for (const chunk of chunks) {
    joined.set(chunk, position);
    position += chunk.byteLength;
  }
  // Only now: chunks may be parts of one buffer.
  for (const chunk of chunks) releaseBytes(chunk);
  return joined;
}
