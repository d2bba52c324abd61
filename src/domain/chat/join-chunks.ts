import { releaseBytes } from "./release-bytes.ts";

/**
 * Joins chunks into one array. The chunks must not be read afterwards: a single one is returned as
 * is.
 */
export function joinChunks(chunks: readonly Uint8Array[], size: number): Uint8Array {
  const [only] = chunks;
  if (only !== undefined && chunks.length === 1) return only;
  const joined = new Uint8Array(size);
  let position = 0;
  for (const chunk of chunks) {
    joined.set(chunk, position);
    position += chunk.byteLength;
  }
  // Released last, as chunks may share one buffer.
  for (const chunk of chunks) releaseBytes(chunk);
  return joined;
}
