import { answerTooLarge } from "../../domain/errors/upstream-failure.ts";

/**
 * Splits a byte stream, in whatever pieces it arrives, into the `data` of server-sent events.
 * Accepts LF or CRLF line ends, several data lines, comments and other fields.
 */
export class SseParser {
  readonly #limitCharacters: number;
  readonly #decoder = new TextDecoder();
  /** Text after the last complete line. */
  #rest = "";
  #data: string | undefined;
  #hasNamedError = false;

  constructor(limitCharacters: number) {
    this.#limitCharacters = limitCharacters;
  }

  /** Whether an event was named `error`. */
  get hasNamedError(): boolean {
    return this.#hasNamedError;
  }

  /** The data of every event that these bytes complete. Throws when one exceeds the limit. */
  push(bytes: Uint8Array): readonly string[] {
    const text = this.#decoder.decode(bytes, inPieces);
    const only = this.#rest === "" && this.#data === undefined ? onlyEventOf(text) : undefined;
    if (only !== undefined) return [only];
    const found: string[] = [];
    // Only new text is searched: a long line must not be searched again with each of its pieces.
    if (!text.includes("\n")) {
      this.#rest += text;
      this.#checkLength();
      return found;
    }
    let start = 0;
    const pending = this.#rest === "" ? text : this.#rest + text;
    for (;;) {
      const end = pending.indexOf("\n", start);
      if (end === -1) break;
      this.#readLine(pending.slice(start, withoutReturn(pending, start, end)), found);
      start = end + 1;
    }
    this.#rest = start === 0 ? pending : pending.slice(start);
    this.#checkLength();
    return found;
  }

  /** The event that the end of the body completes, because servers omit the last empty line. */
  end(): readonly string[] {
    const found: string[] = [];
    if (this.#rest !== "") this.#readLine(this.#rest, found);
    this.#rest = "";
    this.#readLine("", found);
    return found;
  }

  #checkLength(): void {
    if (this.#rest.length + (this.#data?.length ?? 0) > this.#limitCharacters) {
      throw answerTooLarge(`an event of more than ${this.#limitCharacters} characters`);
    }
  }

  #readLine(line: string, found: string[]): void {
    if (line === "") {
      if (this.#data !== undefined) found.push(this.#data);
      this.#data = undefined;
      return;
    }
    if (!line.startsWith("data:")) {
      this.#hasNamedError ||= errorName.test(line);
      return;
    }
    const value = line.charCodeAt(5) === space ? line.slice(6) : line.slice(5);
    this.#data = this.#data === undefined ? value : `${this.#data}\n${value}`;
  }
}

const inPieces = { stream: true };

/** The data of a text that is one event of one line, as nearly all reads of a stream are. */
function onlyEventOf(text: string): string | undefined {
  const end = text.length - 2;
  const isOne = text.startsWith("data: ") && text.endsWith("\n\n") && text.indexOf("\n") === end;
  if (!isOne || text.charCodeAt(end - 1) === carriageReturn) return undefined;
  return text.slice(6, end);
}

const errorName = /^event: ?error$/;
const space = 32;
const carriageReturn = 13;

function withoutReturn(text: string, start: number, end: number): number {
  return end > start && text.charCodeAt(end - 1) === carriageReturn ? end - 1 : end;
}
