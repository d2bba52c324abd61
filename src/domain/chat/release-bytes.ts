/**
 * Gives the memory of bytes back at once, where the collector would leave it for a while. For bytes
 * that nobody reads any more; of a part of a larger buffer nothing is given back.
 */
export function releaseBytes(bytes: Uint8Array): void {
  const { buffer } = bytes;
  if (bytes.byteLength === 0 || !(buffer instanceof ArrayBuffer)) return;
  if (buffer.byteLength !== bytes.byteLength) return;
  buffer.transfer(0);
}
