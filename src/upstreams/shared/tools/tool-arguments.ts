import { parseExact, toolInput } from "../../../domain/chat/tool-input.ts";
import { brokenAnswer } from "../../../domain/errors/upstream-failure.ts";
import { isObject, type JsonObject } from "../../../domain/json-fields.ts";
import { isBlank } from "../adjustments.ts";

/**
 * The input of a call in the history, from the text of its arguments. The provider requires an
 * object: an empty text becomes an empty object, and any other value is put into an object.
 */
export function inputOf(text: string): JsonObject {
  return isBlank(text) ? {} : (toolInput(text) ?? { invalid_arguments: text });
}

/** Parses a body that should be a JSON object, exactly. Throws for anything else. */
export function parseExactly(text: string): JsonObject {
  const value = parseExact(text);
  // A bare integer with many digits has become an object too.
  if (isObject(value) && /^\s*\{/.test(text)) return value;
  throw brokenAnswer("the upstream's answer is not a JSON object");
}
