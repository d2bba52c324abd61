import { isRecord, listOf, recordOf, type JsonRecord } from "../../read-json.ts";

/** One schema with the constraints of both, as far as they can be combined. */
export function mergeSchemas(first: JsonRecord, second: JsonRecord): JsonRecord {
  return mergeWith(first, second, bothOf);
}

function mergeWith(
  first: JsonRecord,
  second: JsonRecord,
  both: (name: string, one: unknown, other: unknown) => unknown,
): JsonRecord {
  const shared = Object.keys(second).filter((name) => Object.hasOwn(first, name));
  const merged = shared.map((name) => [name, both(name, first[name], second[name])] as const);
  return Object.fromEntries([...Object.entries({ ...first, ...second }), ...merged]);
}

function bothOf(keyword: string, first: unknown, second: unknown): unknown {
  switch (keyword) {
    case "properties":
      return mergeWith(recordOf(first), recordOf(second), (_, one, other) => part(one, other));
    case "items":
    case "additionalProperties":
      return part(first, second);
    case "required":
    case "allOf":
      return [...new Set([...listOf(first), ...listOf(second)])];
    case "enum":
      return listOf(first).filter((value) => listOf(second).some((one) => isSame(one, value)));
    case "type":
      return commonTypes([first].flat(), [second].flat());
    default:
      if (/^min|^exclusiveMin/.test(keyword)) return Math.max(Number(first), Number(second));
      if (/^max|^exclusiveMax/.test(keyword)) return Math.min(Number(first), Number(second));
      return second;
  }
}

function part(first: unknown, second: unknown): unknown {
  if (first === false || second === false) return false;
  return isRecord(first) && isRecord(second) ? mergeSchemas(first, second) : second;
}

function isSame(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

function commonTypes(first: readonly unknown[], second: readonly unknown[]): unknown {
  const shared = first.filter((type) => second.includes(type));
  // Every integer is a number.
  if (shared.length === 0 && [...first, ...second].includes("integer")) return "integer";
  return shared.length === 1 ? shared[0] : shared;
}
