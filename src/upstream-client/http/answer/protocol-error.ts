/** An answer that is not valid HTTP/1.1, or is ambiguous. The message has the reason. */
export class ProtocolError extends Error {
  override readonly name = "ProtocolError";
}
