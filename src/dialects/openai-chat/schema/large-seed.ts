import type { ChatRequest } from "../../../domain/chat/chat.ts";

declare global {
  interface JSON {
    /** A value that `JSON.stringify` writes as the given text of a primitive. */
    rawJSON(text: string): unknown;
  }
}

/**
 * A seed has 64 bits, a number 53. If parsing has rounded the seed, returns a copy of the request
 * whose seed is written exactly as in the body; otherwise the request itself.
 */
export function restoreLargeSeed(request: ChatRequest, bodyText: string): ChatRequest {
  if (typeof request.seed !== "number" || Number.isSafeInteger(request.seed)) return request;
  const seed = readRootNumber(bodyText, "seed");
  return seed === undefined ? request : { ...request, seed: JSON.rawJSON(seed) };
}

const quote = 0x22;

/** The characters that decide whether a field belongs to the outermost object. */
const structural = /["[\]{}]/g;

/** Text of a number field of the outermost object; the last one counts, as for `JSON.parse`. */
function readRootNumber(json: string, name: string): string | undefined {
  let found: string | undefined;
  let depth = 0;
  structural.lastIndex = 0;
  while (structural.test(json)) {
    const position = structural.lastIndex - 1;
    const code = json.charCodeAt(position);
    if (code !== quote) {
      depth += depthChange(code);
      continue;
    }
    const end = endOfString(json, position);
    if (depth === 1) {
      const value = valueAfter(json, end);
      const key: unknown = value === undefined ? undefined : JSON.parse(json.slice(position, end));
      if (key === name) found = value;
    }
    structural.lastIndex = end;
  }
  return found;
}

function depthChange(code: number): number {
  switch (code) {
    case 0x5b:
    case 0x7b:
      return 1;
    case 0x5d:
    case 0x7d:
      return -1;
    default:
      return 0;
  }
}

/** Position after the closing quote. A quote after an odd number of backslashes is escaped. */
function endOfString(json: string, start: number): number {
  let end = json.indexOf('"', start + 1);
  while (end !== -1) {
    let backslashes = 0;
    while (json.charAt(end - 1 - backslashes) === "\\") backslashes += 1;
    if (backslashes % 2 === 0) return end + 1;
    end = json.indexOf('"', end + 1);
  }
  return json.length;
}

/** Found by searching, because there may be much white space before them. */
const behindText = /[:,\]}]/g;
const valueBegin = /[-\d"[{tfn]/g;
const numberText = /[-+.\deE]*/y;

/** The number after a key, "" for another value, undefined when the string is no key. */
function valueAfter(json: string, end: number): string | undefined {
  behindText.lastIndex = end;
  if (behindText.exec(json)?.[0] !== ":") return undefined;
  valueBegin.lastIndex = behindText.lastIndex;
  if (!valueBegin.test(json)) return undefined;
  numberText.lastIndex = valueBegin.lastIndex - 1;
  return numberText.exec(json)?.[0];
}
