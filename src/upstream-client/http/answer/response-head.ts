import { AnswerHeaderFields } from "./answer-headers.ts";
import { hasTextAt, isTextCharacter, isTokenCharacter, space, tab } from "./characters.ts";
import { ProtocolError } from "./protocol-error.ts";

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
export type BodyForm = number | "chunked" | "until-close";

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
  const places: number[] = [];
  for (let start = statusEnd + 2; start < text.length;) {
    const end = text.indexOf("\r\n", start);
    if (places.length >= mostFields * 4) throw new ProtocolError("the head has too many fields");
    readField(text, { start, end }, places);
    noteFraming(text, places, framing);
    start = end + 2;
  }
  return {
    status,
    headers: new AnswerHeaderFields(text, places),
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

/** Appends the places of the name and the value. */
function readField(text: string, line: { start: number; end: number }, places: number[]): void {
  let at = line.start;
  while (at < line.end && isTokenCharacter(text.charCodeAt(at))) at += 1;
  if (at === line.start || text[at] !== ":") {
    throw new ProtocolError("the head has a line that is not a field");
  }
  const nameEnd = at;
  let valueStart = at + 1;
  let valueEnd = line.end;
  while (valueStart < valueEnd && isBlank(text.charCodeAt(valueStart))) valueStart += 1;
  while (valueEnd > valueStart && isBlank(text.charCodeAt(valueEnd - 1))) valueEnd -= 1;
  for (let index = valueStart; index < valueEnd; index += 1) {
    if (!isTextCharacter(text.charCodeAt(index))) {
      throw new ProtocolError("a field of the head has a control character");
    }
  }
  places.push(line.start, nameEnd, valueStart, valueEnd);
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
function noteFraming(text: string, places: readonly number[], framing: Framing): void {
  const field = places.length - 4;
  const start = places[field] ?? 0;
  const end = places[field + 1] ?? 0;
  switch (end - start) {
    case 10:
      if (hasTextAt(text, start, "connection")) {
        noteConnection(valueIn(text, places), framing);
      } else if (hasTextAt(text, start, "keep-alive")) {
        const seconds = /(?:^|[,\s])timeout=(\d{1,9})(?:$|[,\s])/i.exec(valueIn(text, places))?.[1];
        if (seconds !== undefined) framing.keepAliveSeconds = Number(seconds);
      }
      return;
    case 14:
      if (hasTextAt(text, start, "content-length")) noteLength(text, places, framing);
      return;
    case 17:
      if (!hasTextAt(text, start, "transfer-encoding")) return;
      if (framing.isChunked) throw new ProtocolError("the head has two transfer-encodings");
      if (valueIn(text, places).toLowerCase() !== "chunked") {
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

function noteLength(text: string, places: readonly number[], framing: Framing): void {
  const start = places[places.length - 2] ?? 0;
  const end = places[places.length - 1] ?? 0;
  const length = end - start > mostLengthDigits ? undefined : readDigits(text, start, end);
  if (length === undefined) throw new ProtocolError("the content-length is not a number");
  if (framing.length !== undefined) throw new ProtocolError("the head has two content-lengths");
  framing.length = length;
}

function valueIn(text: string, places: readonly number[]): string {
  return text.slice(places[places.length - 2], places[places.length - 1]);
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
