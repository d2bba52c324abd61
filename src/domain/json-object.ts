export type JsonObject = Readonly<Record<string, unknown>>;

/** Whether a value is an object with fields: no list, and not null. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
