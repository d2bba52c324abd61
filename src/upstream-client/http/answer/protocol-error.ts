/** An answer that is not valid HTTP/1.1, or may be read in two ways. The message says why. */
export class ProtocolError extends Error {
  override readonly name = "ProtocolError";
}
