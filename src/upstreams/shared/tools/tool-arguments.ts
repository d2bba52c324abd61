import { isObject, type JsonObject } from "../../../domain/json-fields.ts";
import { isBlank } from "../adjustments.ts";
import { brokenAnswer } from "../../../domain/errors/upstream-failure.ts";

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

/**
 * Parses a body that should be a JSON object. Integers that a number cannot represent exactly, such
 * as ids that models pass to tools, become values that `JSON.stringify` writes unchanged. Throws
 * for anything else.
 */
export function parseExactly(text: string): JsonObject {
  const value: unknown = manyDigits.test(text) ? JSON.parse(text, keepInteger) : JSON.parse(text);
  // A bare integer with many digits has become an object too.
  if (isObject(value) && /^\s*\{/.test(text)) return value;
  throw brokenAnswer("the upstream's answer is not a JSON object");
}

/** Integers with fewer digits are always exact. */
const manyDigits = /\d{16}/;

function keepInteger(_key: string, value: unknown, context?: { readonly source: string }): unknown {
  const isInexact = typeof value === "number" && !Number.isSafeInteger(value);
  const source = context?.source ?? "";
  return isInexact && /^-?\d+$/.test(source) ? JSON.rawJSON(source) : value;
}
