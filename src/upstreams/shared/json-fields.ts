/** Readers for JSON from outside: each returns what its name says, or undefined. */

import { isObject, type JsonObject } from "../../domain/json-object.ts";

export { isObject, type JsonObject };

export function objectOf(value: unknown): JsonObject | undefined {
  return isObject(value) ? value : undefined;
}

/** The JSON object in a text, or in bytes in UTF-8; undefined for anything else. */
export function parseObject(json: string | Uint8Array): JsonObject | undefined {
  try {
    return objectOf(JSON.parse(typeof json === "string" ? json : new TextDecoder().decode(json)));
  } catch {
    return undefined;
  }
}

export function listOf(value: unknown): readonly unknown[] | undefined {
  return Array.isArray(value) ? value : undefined;
}

export function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

/** A text that is not empty: servers send empty texts when they mean none. */
export function nonEmpty(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

export function numberOf(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) ? value : undefined;
}

/**
 * Far more than any answer has: a larger count is nonsense, and would spoil every sum it is added
 * to.
 */
const mostCount = 2 ** 40;

/** A count that servers may omit, send as null, or send as text. */
export function countOf(value: unknown): number | undefined {
  const number = typeof value === "string" ? Number(value) : numberOf(value);
  return number !== undefined && number >= 0 && number <= mostCount
    ? Math.floor(number)
    : undefined;
}
