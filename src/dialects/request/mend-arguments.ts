import { isObject } from "../../domain/json-object.ts";

/**
 * Arguments of calls are JSON within a text. Servers parse it, so half of a surrogate pair that is an
 * escape in it would become half a character there.
 */
export function mendArguments(call: unknown): void {
  if (!isObject(call)) return;
  const json = call["arguments"];
  if (typeof json !== "string" || !escapedHalf.test(json)) return;
  Reflect.set(
    call,
    "arguments",
    json.replaceAll(escapes, (found) => (found.length === halfLength ? "\\ufffd" : found)),
  );
}

const escapedHalf = /\\u[dD][89a-fA-F]/;
/** A pair, a half, or any other escape, of which two characters suffice. */
const escapes = /\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|u[dD][89a-fA-F][\da-fA-F]{2}|[^])/g;
const halfLength = 6;
