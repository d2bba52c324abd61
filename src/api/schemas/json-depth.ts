const quote = 0x22;
const backslash = 0x5c;
const openBracket = 0x5b;
const openBrace = 0x7b;
const closeBrace = 0x7d;

/** `[` and `{`, and `]` and `}`, differ in this bit alone. */
const braceBit = 0x20;

/** Strings are walked this far before the search for their end is worth a native call. */
const walkBytes = 32;

/**
 * Whether JSON text nests deeper than `limit` arrays and objects, told from its bytes, so that
 * nothing that recurses over the value ever sees it. Text that is no JSON gets some answer; what
 * precedes its first mistake, the only part a parser descends into, is measured right.
 */
export function exceedsDepth(bytes: Uint8Array, limit: number): boolean {
  if (!hasMoreBrackets(bytes, limit)) return false;
  let depth = 0;
  let position = 0;
  while (position < bytes.length) {
    const byte = bytes[position] ?? 0;
    position += 1;
    if (byte === quote) {
      position = endOfString(bytes, position);
      continue;
    }
    const folded = byte | braceBit;
    if (folded === openBrace) {
      depth += 1;
      if (depth > limit) return true;
    } else if (folded === closeBrace) {
      depth -= 1;
    }
  }
  return false;
}

/** Settles ordinary bodies, which have few brackets, with a handful of native searches. */
function hasMoreBrackets(bytes: Uint8Array, limit: number): boolean {
  if (bytes.length <= limit) return false;
  let count = 0;
  for (const bracket of [openBracket, openBrace]) {
    let position = bytes.indexOf(bracket);
    while (position !== -1) {
      count += 1;
      if (count > limit) return true;
      position = bytes.indexOf(bracket, position + 1);
    }
  }
  return false;
}

/** The position after the closing quote of the string whose text begins at `start`. */
function endOfString(bytes: Uint8Array, start: number): number {
  let position = start;
  while (position < bytes.length) {
    const walkEnd = Math.min(position + walkBytes, bytes.length);
    while (position < walkEnd) {
      const byte = bytes[position];
      if (byte === quote) return position + 1;
      position += byte === backslash ? 2 : 1;
    }
    const end = bytes.indexOf(quote, position);
    if (end === -1) return bytes.length;
    const isEscaped = countBackslashes(bytes, position, end) % 2 === 1;
    position = end + 1;
    if (!isEscaped) return position;
  }
  return position;
}

/** How many stand right before `end`, none of them before `start`. */
function countBackslashes(bytes: Uint8Array, start: number, end: number): number {
  let first = end;
  while (first > start && bytes[first - 1] === backslash) first -= 1;
  return end - first;
}
