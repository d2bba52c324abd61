import { brokenAnswer } from "../errors/upstream-failure.ts";
import { Base64Vectors, type EmbeddingVector, vectorOfNumbers } from "./embedding.ts";

/** An answer whose vectors were taken out of its JSON. */
export interface ScannedVectors {
  /** The rest. A list of one number stands for each vector: its place in `vectors`. */
  readonly json: string;
  readonly vectors: readonly EmbeddingVector[];
}

/** A list or a text of this size takes a few milliseconds, and is far longer than any vector. */
const mostTokenBytes = 2 * 1024 * 1024;
/** Limit on what is left to be parsed at once. */
const mostJsonBytes = 8 * 1024 * 1024;

const quote = 0x22;
const minus = 0x2d;
const colon = 0x3a;
const openBracket = 0x5b;
const backslash = 0x5c;
const closeBracket = 0x5d;

/**
 * Takes the vectors out of a JSON answer as it arrives, in pieces of any size: every list that
 * consists of numbers, and every text of a field `embedding`. So neither the text of the answer nor
 * a list of all its numbers is ever in memory. Throws a broken answer for a vector that is none, and
 * for a text or a rest that is larger than any answer has.
 */
export class VectorScan {
  readonly #vectors: EmbeddingVector[] = [];
  readonly #base64 = new Base64Vectors();
  readonly #mostLists: number;
  readonly #leastBytes: number;
  readonly #json: string[] = [];
  #jsonBytes = 0;
  /** What was not scanned, after the beginning of a list or text whose end has not arrived. */
  #pieces: Buffer[] = [];
  #pieceBytes = 0;
  #restBytes = 0;
  /** Whether the last text could be the name of a field of vectors. */
  #isName = false;
  /** Whether a text here is a vector. */
  #isValue = false;

  /** At least `leastBytes` are scanned at once, except at the end. */
  constructor(mostLists: number, leastBytes = 16 * 1024) {
    this.#mostLists = mostLists;
    this.#leastBytes = leastBytes;
  }

  get vectors(): readonly EmbeddingVector[] {
    return this.#vectors;
  }

  push(piece: Uint8Array): void {
    this.#addPiece(piece);
    // A rest is scanned again only with as much behind it, so that no answer takes long.
    if (this.#pieceBytes - this.#restBytes < Math.max(this.#leastBytes, this.#restBytes)) return;
    const last = this.#pieces.at(-1);
    const bytes = this.#takePieces();
    const restBytes = bytes.byteLength - this.#scan(bytes);
    if (restBytes > mostTokenBytes) {
      throw brokenAnswer(`the answer has a vector or a text of more than ${mostTokenBytes} bytes`);
    }
    // As a part of the last piece, which the next one may follow in memory.
    const holder = last !== undefined && restBytes <= last.byteLength ? last : bytes;
    if (restBytes > 0) this.#addPiece(holder.subarray(-restBytes));
    this.#restBytes = restBytes;
  }

  end(): ScannedVectors {
    const bytes = this.#takePieces();
    this.#keep(bytes, this.#scan(bytes), bytes.byteLength);
    const json = this.#json.join("");
    const hasMark = json.startsWith("\u{feff}");
    return { json: hasMark ? json.slice(1) : json, vectors: this.#vectors };
  }

  /** Pieces of one read lie one behind the other, and become one again without a copy. */
  #addPiece(piece: Uint8Array): void {
    const last = this.#pieces.at(-1);
    const isNext =
      last?.buffer === piece.buffer && last.byteOffset + last.byteLength === piece.byteOffset;
    if (isNext) this.#pieces.pop();
    const bytes = isNext ? last.byteLength + piece.byteLength : piece.byteLength;
    const start = isNext ? last.byteOffset : piece.byteOffset;
    this.#pieces.push(Buffer.from(piece.buffer, start, bytes));
    this.#pieceBytes += piece.byteLength;
  }

  #takePieces(): Buffer {
    const pieces = this.#pieces;
    this.#pieces = [];
    this.#pieceBytes = 0;
    const [only] = pieces;
    return only === undefined || pieces.length > 1 ? Buffer.concat(pieces) : only;
  }

  /** Returns where it stopped: the end, or the beginning of what is incomplete. */
  #scan(bytes: Buffer): number {
    let kept = 0;
    let at = 0;
    while (at < bytes.byteLength) {
      const byte = bytes[at];
      if (byte !== quote && byte !== openBracket) {
        this.#passStructure(byte);
        at += 1;
        continue;
      }
      const end = byte === quote ? endOfText(bytes, at + 1) : endOfNumbers(bytes, at);
      if (end === undefined) break;
      const vector = byte === quote ? this.#readText(bytes, at, end) : readList(bytes, at, end);
      if (vector !== undefined) {
        this.#keep(bytes, kept, at);
        this.#add(vector);
        kept = end;
      }
      // A list of anything else is walked through.
      at = byte === quote || vector !== undefined ? end : at + 1;
      if (byte === openBracket) this.#passStructure(byte);
    }
    this.#keep(bytes, kept, at);
    return at;
  }

  #passStructure(byte: number | undefined): void {
    if (byte === undefined || isSpace(byte)) return;
    this.#isValue = byte === colon && this.#isName;
    this.#isName = false;
  }

  /** The vector, if the text is one. The text begins with its quote and ends after one. */
  #readText(bytes: Buffer, start: number, end: number): EmbeddingVector | undefined {
    const isVector = this.#isValue && end - start > 2;
    this.#isValue = false;
    this.#isName = !isVector && isNameOfVectors(bytes, start, end);
    return isVector ? this.#base64.read(textOf(bytes, start, end)) : undefined;
  }

  #add(vector: EmbeddingVector): void {
    if (this.#vectors.length >= this.#mostLists) {
      throw brokenAnswer("the answer has more lists of numbers than there are inputs");
    }
    this.#json.push(`[${this.#vectors.length}]`);
    this.#vectors.push(vector);
  }

  #keep(bytes: Buffer, from: number, to: number): void {
    this.#jsonBytes += to - from;
    if (this.#jsonBytes > mostJsonBytes) {
      throw brokenAnswer(`the answer has more than ${mostJsonBytes} bytes beside its vectors`);
    }
    if (to > from) this.#json.push(bytes.toString("utf8", from, to));
  }
}

/** Undefined if the closing quote has not arrived. */
function endOfText(bytes: Buffer, start: number): number | undefined {
  for (let at = bytes.indexOf(quote, start); at !== -1; at = bytes.indexOf(quote, at + 1)) {
    let escapes = 0;
    while (at - escapes > start && bytes[at - 1 - escapes] === backslash) escapes += 1;
    if (escapes % 2 === 0) return at + 1;
  }
  return undefined;
}

/** Where a list of numbers would end; its beginning if it is none, undefined if not known yet. */
function endOfNumbers(bytes: Buffer, start: number): number | undefined {
  let first = start + 1;
  while (isSpace(bytes[first])) first += 1;
  const byte = bytes[first];
  if (byte !== undefined && byte !== minus && !(byte >= 0x30 && byte <= 0x39)) return start;
  // A list inside is looked for first, since that ends the search early.
  const inner = bytes.indexOf(openBracket, first);
  const end = (inner === -1 ? bytes : bytes.subarray(0, inner)).indexOf(closeBracket, first);
  if (end !== -1) return end + 1;
  return inner === -1 ? undefined : start;
}

function readList(bytes: Buffer, start: number, end: number): EmbeddingVector | undefined {
  if (end === start) return undefined;
  let list: unknown;
  try {
    list = JSON.parse(bytes.toString("latin1", start, end));
  } catch {
    return undefined;
  }
  return isNumbers(list) ? vectorOfNumbers(list) : undefined;
}

function isNumbers(value: unknown): value is readonly number[] {
  return Array.isArray(value) && value.every((item) => typeof item === "number");
}

/** Base64 between quotes; slashes and line breaks may be escaped. */
function textOf(bytes: Buffer, start: number, end: number): string {
  const text = bytes.toString("latin1", start + 1, end - 1);
  return text.includes("\\") ? (parsedText(`"${text}"`) ?? text) : text;
}

const plainName = '"embedding"';
const longestName = 6 * plainName.length;

function isNameOfVectors(bytes: Buffer, start: number, end: number): boolean {
  if (end - start < plainName.length || end - start > longestName) return false;
  const name = bytes.toString("latin1", start, end);
  return name === plainName || (name.includes("\\") && parsedText(name) === "embedding");
}

function parsedText(json: string): string | undefined {
  try {
    const value: unknown = JSON.parse(json);
    return typeof value === "string" ? value : undefined;
  } catch {
    return undefined;
  }
}

function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}
