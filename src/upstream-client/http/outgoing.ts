import type { Socket } from "bun";

/** How much of a long text is encoded at a time. */
const portionLength = 256 * 1024;

/**
 * The rest of a request that the socket did not take at once. A long text is encoded piece by
 * piece, as the socket takes it, so that it neither holds the event loop nor is in memory twice.
 */
export class Outgoing {
  readonly #parts: Uint8Array[];
  #text: string;
  #at = 0;

  /** `parts` are written before `text`. */
  constructor(parts: Uint8Array[], text: string) {
    this.#parts = parts;
    this.#text = text;
  }

  /** Whether all of it is written; false also if the socket is closed. */
  flush(socket: Pick<Socket, "write">): boolean {
    for (;;) {
      const part = this.#parts.shift() ?? this.#nextPortion();
      if (part === undefined) return true;
      const written = socket.write(part);
      if (written < part.byteLength) {
        this.#parts.unshift(written > 0 ? part.subarray(written) : part);
        return false;
      }
    }
  }

  #nextPortion(): Uint8Array | undefined {
    const text = this.#text;
    if (this.#at >= text.length) return undefined;
    let end = Math.min(text.length, this.#at + portionLength);
    // A pair of surrogates is one character.
    if (end < text.length && isHighSurrogate(text.charCodeAt(end - 1))) end += 1;
    const portion = Buffer.from(text.slice(this.#at, end));
    this.#at = end;
    if (end === text.length) this.#text = "";
    return portion;
  }
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff;
}
