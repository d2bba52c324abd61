/**
 * Frees the memory of bytes at once instead of leaving it to the collector. Nobody may read them
 * afterwards. Has no effect on a part of a larger buffer.
 */
export function releaseBytes(bytes: ArrayBufferView): void {
  const { buffer } = bytes;
  if (bytes.byteLength === 0 || !(buffer instanceof ArrayBuffer)) return;
  if (buffer.byteLength !== bytes.byteLength) return;
  buffer.transfer(0);
}
