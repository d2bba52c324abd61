/** What the readers of all wires take from JSON objects. */
import type { ExtraFields } from "../domain/chat/answer.ts";
import { isObject, type JsonObject } from "../domain/json-fields.ts";

/**
 * The fields of an object that have no name in a conversation; undefined if there are none. `own`
 * are more that have one.
 */
export function fieldsBeyond(
  object: JsonObject,
  known: ReadonlySet<string>,
  ...own: readonly (string | undefined)[]
): ExtraFields | undefined {
  let extra: Record<string, unknown> | undefined;
  for (const field in object) {
    // The last is a name that changes objects in JavaScript.
    if (known.has(field) || own.includes(field) || field === "__proto__") continue;
    extra ??= {};
    extra[field] = object[field];
  }
  return extra;
}

export function objectsIn(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}
