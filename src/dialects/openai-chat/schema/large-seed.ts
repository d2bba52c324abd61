import type { JsonObject } from "../../../domain/json-fields.ts";

/**
 * A seed has 64 bits, a number 53. If parsing has rounded the seed, returns a copy of the body
 * whose seed has the digits that its text has for this number; otherwise the body itself.
 */
export function restoreLargeSeed(body: JsonObject, bodyText: string): JsonObject {
  const { seed } = body;
  if (typeof seed !== "number" || Number.isSafeInteger(seed)) return body;
  const written = [...bodyText.matchAll(/"seed"\s*:\s*(-?\d+)/g)].map(([, digits = ""]) => digits);
  const digits = written.findLast((text) => Number(text) === seed);
  return digits === undefined ? body : { ...body, seed: JSON.rawJSON(digits) };
}
