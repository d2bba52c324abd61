/** Errors are short; the rest of a longer body is not kept. */
const longestBodyBytes = 64 * 1024;

/**
 * Collects the body of an answer that is a JSON object instead of a stream. Servers and proxies
 * send errors in this way, even with status 200. No stream begins like one.
 */
export class JsonBody {
  readonly #decoder = new TextDecoder();
  #isStream = false;
  #takenBytes = 0;
  #text: string | undefined;

  /** The body so far, cut if it is too long; undefined if there is none. */
  get text(): string | undefined {
    return this.#text;
  }

  /** Whether the next bytes of an answer belong to such a body. */
  take(bytes: Uint8Array): boolean {
    if (this.#isStream || (this.#text === undefined && !this.#begins(bytes))) return false;
    const part = bytes.subarray(0, longestBodyBytes - this.#takenBytes);
    this.#takenBytes += part.length;
    this.#text = (this.#text ?? "") + this.#decoder.decode(part, { stream: true });
    return true;
  }

  #begins(bytes: Uint8Array): boolean {
    const first = bytes.find((byte) => !whitespace.has(byte));
    this.#isStream = first !== undefined && first !== openingBrace;
    return first === openingBrace;
  }
}

const openingBrace = 123;
/** Tab, line feed, carriage return and space, which some servers send to keep a connection busy. */
const whitespace: ReadonlySet<number> = new Set([9, 10, 13, 32]);
