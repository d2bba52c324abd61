import { UpstreamFailure } from "../../../../domain/errors/upstream-failure.ts";
import {
  isObject,
  isTextOrNone,
  type JsonObject,
  listOf,
  objectOf,
  parseJson,
} from "../../../../domain/json-fields.ts";
import { refuseError } from "../read-answer.ts";
import { classifyError } from "../read-failure.ts";

/**
 * Reads the data of one event. Undefined when it is malformed: not JSON, or with fields of other
 * types than a chunk's. An object without choices is the server's own event without content.
 * Throws `UpstreamFailure` for an event that contains an error. `hasNamedError`: an event of the
 * stream was named `error`.
 */
export function readChunk(data: string, hasNamedError: boolean): JsonObject | undefined {
  const value = parseJson(data);
  // Some servers send their error in a list.
  const object = objectOf(listOf(value)?.[0] ?? value);
  if (object !== undefined) refuseError(object, "choices");
  const isChunk = object !== undefined && object === value && hasProperChoices(object);
  if (isChunk && (!hasNamedError || "choices" in object)) return object;
  if (hasNamedError || (object === undefined && errorWords.test(data))) {
    throw new UpstreamFailure(classifyError(undefined, object ?? data));
  }
  return undefined;
}

/** An error in plain text or broken JSON. Some servers have `"error": null` in valid chunks. */
const errorWords =
  /"error"\s*:\s*(?!null)|^[^[{]*\b(?:error|exception|fail(?:ed|ure)|overloaded|unavailable|timed? ?out)\b/i;

function hasProperChoices({ choices }: JsonObject): boolean {
  return isNone(choices) || (Array.isArray(choices) && choices.every(isChoice));
}

function isChoice(choice: unknown): boolean {
  return isObject(choice) && (isNone(choice["delta"]) || isDelta(choice["delta"]));
}

function isDelta(delta: unknown): boolean {
  if (!isObject(delta)) return false;
  const { content, tool_calls: calls } = delta;
  return isContent(content) && (isNone(calls) || isListOfObjects(calls));
}

function isContent(content: unknown): boolean {
  return isTextOrNone(content) || (isListOfObjects(content) && content.every(isPart));
}

function isPart({ text }: JsonObject): boolean {
  return isTextOrNone(text);
}

function isNone(value: unknown): boolean {
  return value === undefined || value === null;
}

function isListOfObjects(value: unknown): value is readonly JsonObject[] {
  return Array.isArray(value) && value.every(isObject);
}
