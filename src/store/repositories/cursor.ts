import { InvalidCursor } from "../errors.ts";

/** A row's position in a list sorted by time, then id, or by number, with an empty id. */
export interface ListPosition {
  readonly at: number;
  readonly id: string;
}

/** An opaque text that callers pass back unchanged. */
export function encodeCursor({ at, id }: ListPosition): string {
  return Buffer.from(JSON.stringify([at, id])).toString("base64url");
}

/** Throws `InvalidCursor` for any other text. */
export function decodeCursor(cursor: string): ListPosition {
  const parts: unknown = parse(Buffer.from(cursor, "base64url").toString());
  if (Array.isArray(parts) && parts.length === 2) {
    const list: readonly unknown[] = parts;
    const [at, id] = list;
    if (typeof at === "number" && Number.isSafeInteger(at) && typeof id === "string") {
      return { at, id };
    }
  }
  throw new InvalidCursor("the cursor was not returned by a list");
}

/** Undefined for what is no JSON. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
