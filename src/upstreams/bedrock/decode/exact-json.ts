import { brokenAnswer } from "../../../domain/errors/upstream-failure.ts";
import { isObject, type JsonObject } from "../../shared/json-fields.ts";

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
