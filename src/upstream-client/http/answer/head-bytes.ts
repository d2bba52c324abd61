import { carriageReturn, lineFeed } from "./characters.ts";
import { ProtocolError } from "./protocol-error.ts";

/** More than servers accept themselves (usually 8 to 16 KiB). */
const mostHeadBytes = 64 * 1024;

const leastBytes = 1024;

/** Collects the bytes of a head, which usually arrive together. */
export class HeadBytes {
  /** The earlier bytes, if the head arrived in pieces. */
  #kept: Buffer | undefined;
  #size = 0;
  /** Start of the incomplete line. */
  #lineStart = 0;

  /**
   * The head as text once it is complete, without its empty line; the rest of `bytes` begins at
   * `restAt`. Throws `ProtocolError` for a bare line feed or too long a head.
   */
  take(
    bytes: Buffer,
    start: number,
  ): { readonly text: string; readonly restAt: number } | undefined {
    if (this.#size === 0) {
      this.#lineStart = start;
      const end = this.#findEnd(bytes, start, bytes.length);
      if (end === -1) {
        this.#lineStart -= start;
        this.#keep(bytes, start);
        return undefined;
      }
      if (end - start > mostHeadBytes) throw tooLong();
      return { text: bytes.toString("latin1", start, end - 2), restAt: end };
    }
    const before = this.#size;
    const kept = this.#keep(bytes, start);
    const end = this.#findEnd(kept, before, this.#size);
    if (end === -1) return undefined;
    const text = kept.toString("latin1", 0, end - 2);
    this.#kept = undefined;
    this.#size = 0;
    return { text, restAt: start + end - before };
  }

  /**
   * The position after the empty line; -1 if it has not arrived. `from`: start of the new bytes.
   */
  #findEnd(bytes: Buffer, from: number, end: number): number {
    for (let at = from; at < end;) {
      const feed = bytes.indexOf(lineFeed, at);
      if (feed === -1 || feed >= end) return -1;
      if (feed === this.#lineStart || bytes[feed - 1] !== carriageReturn) {
        throw new ProtocolError("a line of the head ends without a carriage return");
      }
      if (feed === this.#lineStart + 1) return feed + 1;
      this.#lineStart = feed + 1;
      at = feed + 1;
    }
    return -1;
  }

  /** Appends the new bytes; the capacity doubles, so that single bytes are cheap. */
  #keep(bytes: Buffer, start: number): Buffer {
    const size = this.#size + bytes.length - start;
    let kept = this.#kept ?? Buffer.allocUnsafeSlow(Math.max(leastBytes, bytes.length - start));
    if (size > kept.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(size, kept.length * 2));
      kept.copy(larger, 0, 0, this.#size);
      kept = larger;
    }
    bytes.copy(kept, this.#size, start);
    this.#kept = kept;
    this.#size = size;
    // A server of another protocol would never complete the head.
    if (size >= 5 && kept.toString("latin1", 0, 5) !== "HTTP/") {
      throw new ProtocolError("the answer does not begin with a status line of HTTP/1.1");
    }
    if (size > mostHeadBytes && this.#isLong(kept)) throw tooLong();
    return kept;
  }

  /** A body may have arrived with the last piece of a head. */
  #isLong(kept: Buffer): boolean {
    const end = kept.indexOf("\r\n\r\n");
    return end === -1 || end > mostHeadBytes;
  }
}

function tooLong(): ProtocolError {
  return new ProtocolError(`the head is longer than ${mostHeadBytes} bytes`);
}
