import { releaseBytes } from "./release-bytes.ts";

/** One run of bytes in a buffer of its own; the chunks cannot be read afterwards. */
export function joinChunks(chunks: readonly Uint8Array[], size: number): Uint8Array {
  const joined = new Uint8Array(size);
  let position = 0;
  for (const chunk of chunks) {
    joined.set(chunk, position);
    position += chunk.byteLength;
    releaseBytes(chunk);
  }
  return joined;
}
