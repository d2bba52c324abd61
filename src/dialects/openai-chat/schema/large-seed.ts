import type { Conversation } from "../../../domain/chat/conversation.ts";

declare global {
  interface JSON {
    /** A value that `JSON.stringify` writes as the given text of a primitive. */
    rawJSON(text: string): unknown;
  }
}

/**
 * A seed has 64 bits, a number 53. If parsing has rounded the seed, returns a copy of the request
 * whose seed has the digits that the body has for this number; otherwise the request itself.
 */
export function restoreLargeSeed(request: Conversation, bodyText: string): Conversation {
  const { seed } = request;
  if (typeof seed !== "number" || Number.isSafeInteger(seed)) return request;
  const written = [...bodyText.matchAll(/"seed"\s*:\s*(-?\d+)/g)].map(([, digits = ""]) => digits);
  const digits = written.findLast((text) => Number(text) === seed);
  return digits === undefined ? request : { ...request, seed: JSON.rawJSON(digits) };
}
