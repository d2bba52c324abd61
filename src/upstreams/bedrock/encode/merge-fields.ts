import { isObject, type JsonObject } from "../../shared/json-fields.ts";

/** Both objects in one, objects within them too. Where both say something, the second one counts. */
export function mergeFields(first: JsonObject, second: JsonObject): JsonObject {
  const merged: Record<string, unknown> = { ...first };
  for (const [name, value] of Object.entries(second)) {
    const other = merged[name];
    merged[name] = isObject(other) && isObject(value) ? mergeFields(other, value) : value;
  }
  return merged;
}
