import { isObject, type JsonObject } from "../../shared/json-fields.ts";

/** Merges two objects, and objects within them. The second one overrides values. */
export function mergeFields(first: JsonObject, second: JsonObject): JsonObject {
  const merged: Record<string, unknown> = { ...first };
  for (const [name, value] of Object.entries(second)) {
    const other = merged[name];
    merged[name] = isObject(other) && isObject(value) ? mergeFields(other, value) : value;
  }
  return merged;
}
