/** Readers for JSON from outside: each returns what its name says, or undefined. */
import { isObject, type JsonObject } from "./json-object.ts";
import type { EmbeddingVector } from "./chat/embedding.ts";

export { isObject, type JsonObject };

export function objectOf(value: unknown): JsonObject | undefined {
  return isObject(value) ? value : undefined;
}

/** The JSON value of a text; undefined for anything else. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The JSON object in a text, or in bytes in UTF-8; undefined for anything else. */
export function parseObject(json: string | Uint8Array): JsonObject | undefined {
  return objectOf(parseJson(typeof json === "string" ? json : new TextDecoder().decode(json)));
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

export function isTextOrNone(value: unknown): boolean {
  return value === undefined || value === null || typeof value === "string";
}

export function numberOf(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) ? value : undefined;
}

export function flagOf(value: unknown): boolean | undefined {
  return typeof value === "boolean" ? value : undefined;
}

/** The keys of a table that is known when it is written, such as a file of facts. */
export function keysOf<Key extends string>(object: Readonly<Record<Key, unknown>>): readonly Key[] {
  return Object.keys(object).filter((key): key is Key => key in object);
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

/** Longer than any provider's counts. */
const longestUsageBytes = 4_096;
const name = new TextEncoder().encode('"usage"');
const closingBrace = 0x7d;

/**
 * The last `usage` object in the bytes of a JSON answer that cannot be parsed, because it is broken
 * or too large. Text of the answer cannot pass for it: quotes are escaped there.
 */
export function usageIn(body: Uint8Array): JsonObject | undefined {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  const at = bytes.lastIndexOf(name);
  if (at === -1) return undefined;
  const rest = bytes.subarray(at + name.length, at + name.length + longestUsageBytes);
  const opening = /^\s*:\s*(?=\{)/.exec(rest.toString("latin1"))?.[0];
  if (opening === undefined) return undefined;
  // The object ends at one of the braces; details inside it have their own.
  for (
    let end = rest.indexOf(closingBrace);
    end !== -1;
    end = rest.indexOf(closingBrace, end + 1)
  ) {
    const usage = parseObject(rest.subarray(opening.length, end + 1));
    if (usage !== undefined) return usage;
  }
  return undefined;
}

/** The vector that stood at the place of this value in an answer; undefined if none did. */
export function vectorAt(
  value: unknown,
  vectors: readonly EmbeddingVector[],
): EmbeddingVector | undefined {
  const place = listOf(value);
  return place?.length === 1 ? vectors[numberOf(place[0]) ?? -1] : undefined;
}
