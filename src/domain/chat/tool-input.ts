import { isObject, type JsonObject } from "../json-object.ts";

/**
 * The input of a call from its JSON text, exactly; undefined for anything but an object, and for one
 * that is deeper than a request may be: writing it would overflow the stack.
 */
export function toolInput(text: string): JsonObject | undefined {
  if (!/^\s*\{/.test(text)) return undefined;
  try {
    const value = parseExact(text);
    return isObject(value) && !isTooDeep(value, text) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Whether the text of an input is complete: no object stays one when text follows. */
export function isWholeInput(text: string): boolean {
  if (!text.endsWith("}")) return false;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/**
 * Parses JSON. Integers that a number cannot represent exactly, such as ids that models pass to tools,
 * become values that `JSON.stringify` writes unchanged. Throws for text that is no JSON.
 */
export function parseExact(text: string): unknown {
  return mayBeInexact(text) ? JSON.parse(text, keepInteger) : JSON.parse(text);
}

/** Integers with fewer digits are always exact. */
export function mayBeInexact(text: string): boolean {
  return /\d{16}/.test(text);
}

function keepInteger(_key: string, value: unknown, context?: { readonly source: string }): unknown {
  const isInexact = typeof value === "number" && !Number.isSafeInteger(value);
  const source = context?.source ?? "";
  return isInexact && /^-?\d+$/.test(source) ? JSON.rawJSON(source) : value;
}

declare global {
  interface JSON {
    /** A value that `JSON.stringify` writes as the given text of a primitive. */
    rawJSON(text: string): unknown;
  }
}

/** As deep as a request may be itself. */
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
