/** Joins chunks, which must not be read afterwards: a single one is returned as it is. */
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

/** Freeing fewer bytes costs more than the collector takes for them. */
const leastReleased = 16 * 1024;

/**
 * Frees the memory of long bytes at once instead of leaving it to the collector. Nobody may read them
 * afterwards. Has no effect on a part of a larger buffer.
 */
export function releaseBytes(bytes: ArrayBufferView): void {
  if (bytes.byteLength < leastReleased) return;
  const { buffer } = bytes;
  if (!(buffer instanceof ArrayBuffer)) return;
  if (buffer.byteLength !== bytes.byteLength) return;
  buffer.transfer(0);
}
