/** What the readers of all wires take from JSON objects. */
import type { ExtraFields } from "../domain/chat/answer.ts";
import { isObject, type JsonObject } from "../domain/json-fields.ts";

/** The fields of an object that have no name in a conversation; undefined if there are none. */
export function fieldsBeyond(
  object: JsonObject,
  known: ReadonlySet<string>,
  own?: string,
): ExtraFields | undefined {
  let extra: Record<string, unknown> | undefined;
  for (const field in object) {
    if (known.has(field) || field === own) continue;
    extra ??= {};
    extra[field] = object[field];
  }
  return extra;
}

export function objectsIn(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}
