/**
 * Half of a surrogate pair alone is no text: it cannot be written in UTF-8, and providers refuse the
 * whole body that has one. U+FFFD takes its place.
 */
export const replacement = "\ufffd";

/** Half of a pair is in JSON only as an escape, so that most bodies need no second look. */
export function mayHoldHalves(json: Uint8Array): boolean {
  // Most short bodies have no escape at all.
  if (!json.includes(0x5c)) return false;
  const bytes = Buffer.from(json.buffer, json.byteOffset, json.byteLength);
  if (!bytes.includes("\\u")) return false;
  return bytes.includes("\\ud") || bytes.includes("\\uD");
}

/** Mends all texts and names in place, without recursion: the depth of answers has no bound. */
export function replaceHalves(value: unknown): void {
  const open: unknown[] = [value];
  while (open.length > 0) {
    const holder = open.pop();
    if (Array.isArray(holder)) {
      for (let at = 0; at < holder.length; at += 1) mend(holder, at, open);
    } else if (typeof holder === "object" && holder !== null) {
      const names = Object.keys(holder);
      for (const name of names) mend(holder, name, open);
      if (!names.every((name) => name.isWellFormed())) renameFields(holder);
    }
  }
}

/** The JSON text of arguments, in which no escape stands for half a pair. */
export function wellFormedJson(value: unknown): string {
  replaceHalves(value);
  return JSON.stringify(value);
}

function mend(holder: object, name: string | number, open: unknown[]): void {
  const value: unknown = Reflect.get(holder, name);
  if (typeof value === "object") open.push(value);
  else if (typeof value === "string" && !value.isWellFormed()) {
    Reflect.set(holder, name, value.toWellFormed());
  }
}

/** Their order is kept. */
function renameFields(holder: object): void {
  for (const [name, value] of Object.entries(holder)) {
    Reflect.deleteProperty(holder, name);
    Reflect.defineProperty(holder, name.toWellFormed(), {
      value,
      configurable: true,
      enumerable: true,
      writable: true,
    });
  }
}
