/** What the readers of all wires take from JSON objects. */
import type { ExtraFields } from "../domain/chat/answer.ts";
import { isObject, type JsonObject, listOf } from "../domain/json-fields.ts";

export type FieldNames = Readonly<Record<string, true>>;

/**
 * The names in a text, with a space between two. As an object: each message asks for each of its
 * fields, and a set takes twice as long.
 */
export function fieldNames(text: string): FieldNames {
  return Object.fromEntries(text.split(" ").map((name) => [name, true]));
}

/**
 * The fields of an object that have no name in a conversation; undefined if there are none. `own`
 * is one more that has.
 */
export function fieldsBeyond(
  object: JsonObject,
  known: FieldNames,
  own?: string,
): ExtraFields | undefined {
  let extra: Record<string, unknown> | undefined;
  for (const field in object) {
    // The last is a name that changes objects in JavaScript.
    if (known[field] === true || field === own || field === "__proto__") continue;
    extra ??= {};
    extra[field] = object[field];
  }
  return extra;
}

export function objectsIn(value: unknown): readonly JsonObject[] {
  const list = listOf(value) ?? [];
  // Copied only where needed: this is on the way of each call.
  return list.every(isObject) ? list : list.filter(isObject);
}
