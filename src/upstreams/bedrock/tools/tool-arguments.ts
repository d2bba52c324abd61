import type { JsonObject } from "../../shared/json-fields.ts";
import { isBlank } from "../encode/blank-text.ts";
import { parseExactly } from "../decode/exact-json.ts";

/**
 * The input of a call in the history, from the text of its arguments. The provider requires an
 * object: an empty text becomes an empty object, and any other value is put into an object.
 */
export function inputOf(text: string): JsonObject {
  if (isBlank(text)) return {};
  const value = parse(text);
  return value === undefined || isTooDeep(value, text) ? { invalid_arguments: text } : value;
}

function parse(text: string): JsonObject | undefined {
  try {
    return parseExactly(text);
  } catch {
    return undefined;
  }
}

/** As deep as a request may be itself; writing a far deeper value would overflow the stack. */
const deepestLevel = 512;

function isTooDeep(value: JsonObject, text: string): boolean {
  // Each level takes at least two characters.
  return text.length > 2 * deepestLevel && isDeeperThan(value, deepestLevel);
}

function isDeeperThan(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (levels === 0) return true;
  return Object.values(value).some((child) => isDeeperThan(child, levels - 1));
}
