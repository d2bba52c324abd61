export interface ResponseHead {
  readonly status: number;
  readonly headers: AnswerHeaderFields;
  readonly body: BodyForm;
  /** Whether the connection can carry another request after the answer. */
  readonly keepsOpen: boolean;
  /** How long the server keeps an idle connection, if it says so (`Keep-Alive: timeout=5`). */
  readonly keepAliveSeconds: number | undefined;
}

/** How the end of a body is known: a length in bytes, or one of the others. */
type BodyForm = number | "chunked" | "until-close";

/** More than any server sends. */
const mostFields = 256;
/** Keeps every sum of lengths exact. */
const mostLengthDigits = 15;

/**
 * Reads a head: the status line and the fields, each with its line end, without the empty line.
 * Throws `ProtocolError` for an ambiguous head.
 */
export function readHead(text: string): ResponseHead {
  const statusEnd = text.indexOf("\r\n");
  const { status, minorVersion } = readStatusLine(text, statusEnd);
  const framing: Framing = {
    length: undefined,
    isChunked: false,
    closes: false,
    keepsAlive: false,
    keepAliveSeconds: undefined,
  };
  const field: Field = { start: statusEnd + 2, nameEnd: 0, valueStart: 0, valueEnd: 0 };
  for (let fields = 0; field.start < text.length; fields += 1) {
    const end = text.indexOf("\r\n", field.start);
    if (fields >= mostFields) throw new ProtocolError("the head has too many fields");
    readField(text, field, end);
    noteFraming(text, field, framing);
    field.start = end + 2;
  }
  return {
    status,
    headers: new AnswerHeaderFields(text),
    body: bodyOf(status, minorVersion, framing),
    keepsOpen: minorVersion === 1 ? !framing.closes : framing.keepsAlive && !framing.closes,
    keepAliveSeconds: framing.keepAliveSeconds,
  };
}

/** `HTTP/1.1 200 OK`; some servers leave out the reason and the space before it. */
function readStatusLine(text: string, end: number): { status: number; minorVersion: number } {
  const minorVersion = text.charCodeAt(7) - 0x30;
  const isVersion = text.startsWith("HTTP/1.") && (minorVersion === 0 || minorVersion === 1);
  if (!isVersion || end < 12 || text.charCodeAt(8) !== space) throw notHttp();
  const status = readDigits(text, 9, 12);
  if (status === undefined || status < 100 || status > 599) throw notHttp();
  if (end > 12 && text.charCodeAt(12) !== space) throw notHttp();
  for (let index = 13; index < end; index += 1) {
    if (!isTextCharacter(text.charCodeAt(index))) throw notHttp();
  }
  return { status, minorVersion };
}

function notHttp(): ProtocolError {
  return new ProtocolError("the answer does not begin with a status line of HTTP/1.1");
}

/** Places in a head: of a line, and in it of its name and its value. */
interface Field {
  start: number;
  nameEnd: number;
  valueStart: number;
  valueEnd: number;
}

/** Finds the name and the value in the line of a field. */
function readField(text: string, field: Field, end: number): void {
  let at = field.start;
  while (at < end && isTokenCharacter(text.charCodeAt(at))) at += 1;
  if (at === field.start || text[at] !== ":") {
    throw new ProtocolError("the head has a line that is not a field");
  }
  field.nameEnd = at;
  findValue(text, field, end);
  for (let index = field.valueStart; index < field.valueEnd; index += 1) {
    if (!isTextCharacter(text.charCodeAt(index))) {
      throw new ProtocolError("a field of the head has a control character");
    }
  }
}

/** Without the blanks around it. */
function findValue(text: string, field: Field, end: number): void {
  let start = field.nameEnd + 1;
  let valueEnd = end;
  while (start < valueEnd && isBlank(text.charCodeAt(start))) start += 1;
  while (valueEnd > start && isBlank(text.charCodeAt(valueEnd - 1))) valueEnd -= 1;
  field.valueStart = start;
  field.valueEnd = valueEnd;
}

function isBlank(code: number): boolean {
  return code === space || code === tab;
}

interface Framing {
  length: number | undefined;
  isChunked: boolean;
  closes: boolean;
  keepsAlive: boolean;
  keepAliveSeconds: number | undefined;
}

/** Notes the fields that decide about the body and the connection. */
function noteFraming(text: string, field: Field, framing: Framing): void {
  const { start, nameEnd } = field;
  switch (nameEnd - start) {
    case 10:
      if (hasTextAt(text, start, "connection")) {
        noteConnection(valueIn(text, field), framing);
      } else if (hasTextAt(text, start, "keep-alive")) {
        const seconds = /(?:^|[,\s])timeout=(\d{1,9})(?:$|[,\s])/i.exec(valueIn(text, field))?.[1];
        if (seconds !== undefined) framing.keepAliveSeconds = Number(seconds);
      }
      return;
    case 14:
      if (hasTextAt(text, start, "content-length")) noteLength(text, field, framing);
      return;
    case 17:
      if (!hasTextAt(text, start, "transfer-encoding")) return;
      if (framing.isChunked) throw new ProtocolError("the head has two transfer-encodings");
      if (valueIn(text, field).toLowerCase() !== "chunked") {
        throw new ProtocolError("the answer has a transfer-encoding other than chunked");
      }
      framing.isChunked = true;
  }
}

function noteConnection(value: string, framing: Framing): void {
  for (const option of value.toLowerCase().split(",")) {
    const name = option.trim();
    if (name === "close") framing.closes = true;
    else if (name === "keep-alive") framing.keepsAlive = true;
  }
}

function noteLength(
  text: string,
  { valueStart: start, valueEnd: end }: Field,
  framing: Framing,
): void {
  const length = end - start > mostLengthDigits ? undefined : readDigits(text, start, end);
  if (length === undefined) throw new ProtocolError("the content-length is not a number");
  if (framing.length !== undefined) throw new ProtocolError("the head has two content-lengths");
  framing.length = length;
}

function valueIn(text: string, { valueStart, valueEnd }: Field): string {
  return text.slice(valueStart, valueEnd);
}

/** Undefined unless there are only digits, and at least one. */
function readDigits(text: string, start: number, end: number): number | undefined {
  let value = 0;
  for (let index = start; index < end; index += 1) {
    const digit = text.charCodeAt(index) - 0x30;
    if (digit < 0 || digit > 9) return undefined;
    value = value * 10 + digit;
  }
  return end > start ? value : undefined;
}

function bodyOf(status: number, minorVersion: number, framing: Framing): BodyForm {
  const { length, isChunked } = framing;
  if (isChunked && length !== undefined) {
    throw new ProtocolError("the head has both a content-length and a transfer-encoding");
  }
  if (isChunked && minorVersion === 0) {
    throw new ProtocolError("an answer of HTTP/1.0 cannot be chunked");
  }
  // RFC 9112, section 6.3: these have no body, even if their head announces one. A 304 may state its length.
  if (status < 200 || status === 204 || status === 304) {
    const isOdd = isChunked || (length !== undefined && length > 0);
    if (isOdd && status !== 304) throw new ProtocolError(`status ${status} has no body`);
    return 0;
  }
  return isChunked ? "chunked" : (length ?? "until-close");
}

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

  /** The position after the empty line; -1: not arrived. `from`: start of the new bytes. */
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

/** The headers of an answer. Kept as the text of its head: a call reads two or three of them. */
class AnswerHeaderFields {
  readonly #head: string;

  constructor(head: string) {
    this.#head = head;
  }

  /** The value, joined by commas if there are several; null without one. `name`: lower case. */
  get(name: string): string | null {
    const head = this.#head;
    let found: string | null = null;
    for (let start = head.indexOf("\r\n") + 2; start < head.length;) {
      const end = head.indexOf("\r\n", start);
      const nameEnd = start + name.length;
      if (head[nameEnd] === ":" && hasTextAt(head, start, name)) {
        const field = { start, nameEnd, valueStart: 0, valueEnd: 0 };
        findValue(head, field, end);
        const value = valueIn(head, field);
        found = found === null ? value : `${found}, ${value}`;
      }
      start = end + 2;
    }
    return found;
  }
}

/** What bytes mean in the heads of messages (RFC 9110, section 5.6.2; RFC 9112, section 2.2). */

export const lineFeed = 0x0a;
export const carriageReturn = 0x0d;
const space = 0x20;
export const tab = 0x09;

const tokenCharacters = new Uint8Array(128);
for (const character of "!#$%&'*+-.^_`|~0123456789") {
  tokenCharacters[character.charCodeAt(0)] = 1;
}
for (let letter = 0; letter < 26; letter += 1) {
  tokenCharacters[0x41 + letter] = 1;
  tokenCharacters[0x61 + letter] = 1;
}

/** Whether the name of a header may contain it. */
function isTokenCharacter(code: number): boolean {
  return code < 128 && tokenCharacters[code] === 1;
}

/** Whether the value of a header or a reason may contain it. */
function isTextCharacter(code: number): boolean {
  return code >= space ? code !== 0x7f : code === tab;
}

/** The value of a hexadecimal digit; -1 for anything else. */
export function hexadecimalValue(code: number): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const lower = code | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}

/** Whether a text, in any case, has another there, which is in lower case. */
function hasTextAt(text: string, start: number, lower: string): boolean {
  for (let index = 0; index < lower.length; index += 1) {
    const code = text.charCodeAt(start + index);
    const own = code >= 0x41 && code <= 0x5a ? code + 0x20 : code;
    if (own !== lower.charCodeAt(index)) return false;
  }
  return true;
}

/** An answer that is not valid HTTP/1.1, or is ambiguous. The message has the reason. */
export class ProtocolError extends Error {
  override readonly name = "ProtocolError";
}
