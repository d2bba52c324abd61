import { isObject, type JsonObject } from "../shared/json-fields.ts";

/**
 * A copy of a JSON schema in which every object says that it has no further properties, unless it
 * says something else already.
 */
export function closeSchema(schema: JsonObject): JsonObject {
  const copy: Record<string, unknown> = { ...schema };
  for (const keyword of schemaKeywords) {
    const value = copy[keyword];
    if (isObject(value)) copy[keyword] = closeSchema(value);
  }
  for (const keyword of listKeywords) {
    const value = copy[keyword];
    if (Array.isArray(value)) copy[keyword] = value.map(closeIfObject);
  }
  for (const keyword of mapKeywords) {
    const value = copy[keyword];
    if (!isObject(value)) continue;
    const entries = Object.entries(value).map(([name, child]) => [name, closeIfObject(child)]);
    copy[keyword] = Object.fromEntries(entries);
  }
  const describesObject = copy["type"] === "object" || isObject(copy["properties"]);
  if (describesObject) copy["additionalProperties"] ??= false;
  return copy;
}

function closeIfObject(value: unknown): unknown {
  return isObject(value) ? closeSchema(value) : value;
}

/** Keywords whose value is a schema, a list of schemas, or schemas by name. */
const schemaKeywords = ["items", "not", "additionalProperties"] as const;
const listKeywords = ["anyOf", "allOf", "oneOf", "prefixItems"] as const;
const mapKeywords = ["properties", "$defs", "definitions"] as const;
