import { InvalidCursor } from "../errors.ts";

/** A row's position in a list sorted by time, then id. */
export interface ListPosition {
  readonly at: number;
  readonly id: string;
}

/** An opaque text that callers pass back unchanged. */
export function encodeCursor(position: ListPosition): string {
  return encode([position.at, position.id]);
}

/** Throws `InvalidCursor` for any other text. */
export function decodeCursor(cursor: string): ListPosition {
  const parts = decode(cursor);
  const [at, id] = parts;
  if (parts.length !== 2 || !isInteger(at) || typeof id !== "string") throw invalid();
  return { at, id };
}

/** The cursor of a list whose rows are numbered. */
export function encodeSequence(sequence: number): string {
  return encode([sequence]);
}

/** Throws `InvalidCursor` for any other text. */
export function decodeSequence(cursor: string): number {
  const parts = decode(cursor);
  const [sequence] = parts;
  if (parts.length !== 1 || !isInteger(sequence)) throw invalid();
  return sequence;
}

function encode(parts: readonly (string | number)[]): string {
  return Buffer.from(JSON.stringify(parts)).toString("base64url");
}

function decode(cursor: string): readonly unknown[] {
  const parts = parse(Buffer.from(cursor, "base64url").toString());
  if (!Array.isArray(parts)) throw invalid();
  return parts;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw invalid();
  }
}

function isInteger(value: unknown): value is number {
  return Number.isSafeInteger(value);
}

function invalid(): InvalidCursor {
  return new InvalidCursor("the cursor was not returned by a list");
}
