import { isList, isRecord, listOf, numberOf, recordOf, type JsonRecord } from "../../read-json.ts";

/** One schema that asks for what both ask for, as far as that can be written down. */
export function mergeSchemas(first: JsonRecord, second: JsonRecord): JsonRecord {
  const merged: Record<string, unknown> = { ...first };
  for (const [keyword, value] of Object.entries(second)) {
    merged[keyword] = keyword in first ? combine(keyword, first[keyword], value) : value;
  }
  return merged;
}

function combine(keyword: string, first: unknown, second: unknown): unknown {
  switch (keyword) {
    case "properties":
      return mergeProperties(recordOf(first), recordOf(second));
    case "required":
      return [...new Set([...listOf(first), ...listOf(second)])];
    case "enum":
      return common(listOf(first), listOf(second));
    case "type":
      return commonTypes(first, second);
    case "allOf":
      return [...listOf(first), ...listOf(second)];
    case "minimum":
    case "exclusiveMinimum":
    case "minLength":
    case "minItems":
    case "minProperties":
      return Math.max(numberOf(first) ?? -Infinity, numberOf(second) ?? -Infinity);
    case "maximum":
    case "exclusiveMaximum":
    case "maxLength":
    case "maxItems":
    case "maxProperties":
      return Math.min(numberOf(first) ?? Infinity, numberOf(second) ?? Infinity);
    case "items":
      return isRecord(first) && isRecord(second) ? mergeSchemas(first, second) : second;
    case "additionalProperties":
      if (first === false || second === false) return false;
      return isRecord(first) && isRecord(second) ? mergeSchemas(first, second) : second;
    default:
      return second;
  }
}

function mergeProperties(first: JsonRecord, second: JsonRecord): JsonRecord {
  const merged: Record<string, unknown> = { ...first };
  for (const [name, schema] of Object.entries(second)) {
    const other = first[name];
    merged[name] = isRecord(other) && isRecord(schema) ? mergeSchemas(other, schema) : schema;
  }
  return merged;
}

function common(first: readonly unknown[], second: readonly unknown[]): unknown[] {
  const known = new Set(second.map((value) => JSON.stringify(value)));
  return first.filter((value) => known.has(JSON.stringify(value)));
}

function commonTypes(first: unknown, second: unknown): unknown {
  const ones = isList(first) ? first : [first];
  const others = isList(second) ? second : [second];
  const shared = ones.filter((type) => others.includes(type));
  // Every integer is a number.
  if (shared.length === 0 && [...ones, ...others].includes("integer")) return "integer";
  return shared.length === 1 ? shared[0] : shared;
}
