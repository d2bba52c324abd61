import { plausibleText, type TextHints } from "./schema-text.ts";
import type { Random } from "./random.ts";
import { isList, isRecord, type JsonRecord, listOf, numberOf, recordOf } from "../json.ts";

export interface ValueSource {
  readonly random: Random;
  readonly hints: TextHints;
}

/** From this depth on optional parts are omitted, so that recursive schemas end. */
const requiredOnlyDepth = 3;
const maxDepth = 32;

/** A valid JSON value for a JSON Schema, of the subset that tools and structured output use. */
export function valueForSchema(schema: JsonRecord, source: ValueSource): unknown {
  return new ValueWriter(schema, source).write(schema, "", 0);
}

class ValueWriter {
  readonly #root: JsonRecord;
  readonly #source: ValueSource;

  constructor(root: JsonRecord, source: ValueSource) {
    this.#root = root;
    this.#source = source;
  }

  write(schemaOrFlag: unknown, fieldName: string, depth: number): unknown {
    if (depth > maxDepth || schemaOrFlag === false) return null;
    const schema = this.#flatten(recordOf(schemaOrFlag), depth);
    if ("const" in schema) return schema["const"];
    const allowed = listOf(schema["enum"]);
    if (allowed.length > 0) return this.#source.random.pickAny(allowed);
    switch (this.#typeOf(schema, depth)) {
      case "object":
        return this.#object(schema, depth);
      case "array":
        return this.#array(schema, fieldName, depth);
      case "integer":
        return numberForSchema(schema, true, this.#source.random);
      case "number":
        return numberForSchema(schema, false, this.#source.random);
      case "boolean":
        return this.#source.random.chance(0.5);
      case "null":
        return null;
      default:
        return plausibleText(schema, fieldName, this.#source);
    }
  }

  /** Follows references and picks alternatives until only plain keywords are left. */
  #flatten(schema: JsonRecord, depth: number): JsonRecord {
    let flat = schema;
    for (let step = 0; step < maxDepth; step++) {
      const { $ref: reference, ...withoutReference } = flat;
      const keyword = ["allOf", "anyOf", "oneOf"].find((name) => isList(flat[name]));
      if (typeof reference === "string") {
        flat = mergeSchemas(withoutReference, this.#resolve(reference));
      } else if (keyword === undefined) {
        return flat;
      } else {
        const { [keyword]: listed, ...rest } = flat;
        const parts = listOf(listed);
        const chosen = keyword === "allOf" ? parts : [this.#alternative(parts, depth)];
        flat = chosen.map(recordOf).reduce(mergeSchemas, rest);
      }
    }
    return flat;
  }

  #resolve(reference: string): JsonRecord {
    let place: unknown = this.#root;
    for (const part of reference.replace(/^#\/?/, "").split("/")) {
      const key = decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~");
      if (key !== "") place = isList(place) ? place[Number(key)] : recordOf(place)[key];
    }
    return recordOf(place);
  }

  #alternative(alternatives: readonly unknown[], depth: number): JsonRecord {
    const schemas = alternatives.filter((schema) => isRecord(schema));
    const plain = schemas.filter((schema) => isLeaf(schema));
    if (depth >= requiredOnlyDepth && plain.length > 0) return plain[0] ?? {};
    const full = schemas.filter((schema) => schema["type"] !== "null");
    return this.#source.random.pickAny(full) ?? schemas[0] ?? {};
  }

  #typeOf(schema: JsonRecord, depth: number): unknown {
    const type = schema["type"];
    if (!isList(type)) return type ?? typeByKeywords(schema);
    if (depth >= requiredOnlyDepth && type.includes("null")) return "null";
    return this.#source.random.pickAny(type.filter((name) => name !== "null")) ?? "null";
  }

  #object(schema: JsonRecord, depth: number): JsonRecord {
    const { random } = this.#source;
    const properties = recordOf(schema["properties"]);
    const least = numberOf(schema["minProperties"]) ?? 0;
    const names = listOf(schema["required"]).filter((name) => typeof name === "string");
    const optional = Object.keys(properties).filter((name) => !names.includes(name));
    const wanted = optional.filter(() => depth < requiredOnlyDepth && random.chance(0.6));
    const most = numberOf(schema["maxProperties"]) ?? Number.POSITIVE_INFINITY;
    names.push(...wanted.slice(0, Math.max(0, most - names.length)));
    const made = Array.from({ length: least }, (_, index) => `extra${index + 1}`);
    const spare = [...new Set([...optional, ...made])].filter((name) => !names.includes(name));
    names.push(...spare.slice(0, Math.max(0, least - names.length)));
    const rule = (name: string): unknown =>
      Object.hasOwn(properties, name) ? properties[name] : schema["additionalProperties"];
    return Object.fromEntries(
      names.map((name) => [name, this.write(rule(name) || {}, name, depth + 1)]),
    );
  }

  #array(schema: JsonRecord, fieldName: string, depth: number): unknown[] {
    const leading = listOf(schema["prefixItems"] ?? [schema["contains"]].filter(isRecord));
    const lowest = Math.max(numberOf(schema["minItems"]) ?? 0, leading.length);
    const wished =
      depth < requiredOnlyDepth ? Math.max(this.#source.random.integer(1, 2), lowest) : lowest;
    const highest = schema["items"] === false ? leading.length : numberOf(schema["maxItems"]);
    const size = Math.min(highest ?? wished, wished);
    const items: unknown[] = [];
    const known = new Set<string>();
    for (let attempt = 0; items.length < size && attempt < size + 200; attempt++) {
      const rule = leading[items.length] ?? schema["items"] ?? {};
      const item = this.write(rule, fieldName, depth + 1);
      const text = JSON.stringify(item);
      if (schema["uniqueItems"] === true && known.has(text)) continue;
      known.add(text);
      items.push(item);
    }
    return items;
  }
}

function isLeaf(schema: JsonRecord): boolean {
  const nested = ["$ref", "allOf", "anyOf", "oneOf", "properties", "items"];
  return schema["type"] !== "object" && !nested.some((keyword) => keyword in schema);
}

function typeByKeywords(schema: JsonRecord): string {
  return (
    typesByKeywords.find(([pattern]) =>
      Object.keys(schema).some((key) => pattern.test(key)),
    )?.[1] ?? "string"
  );
}

const typesByKeywords = [
  [/roperties$|^required$/, "object"],
  [/[iI]tems$|^contains$/, "array"],
  [/(?:min|max)imum$/i, "number"],
] as const;

/** A number within the bounds of a schema; near the bound if it has only one. */
function numberForSchema(schema: JsonRecord, isWhole: boolean, random: Random): number {
  const range = rangeOf(schema);
  const step = numberOf(schema["multipleOf"]) ?? (isWhole ? 1 : undefined);
  if (step === undefined) return decimalWithin(range, random);
  const multiple = isWhole && !Number.isInteger(step) ? 1 : step;
  let first = Math.ceil(range.lowest / multiple);
  let last = Math.floor(range.highest / multiple);
  if (range.excludesLowest && first * multiple <= range.lowest) first += 1;
  if (range.excludesHighest && last * multiple >= range.highest) last -= 1;
  const value = random.integer(first, Math.max(first, Math.min(last, first + 1000))) * multiple;
  // Rounds the error of binary fractions away, or the result would not be a multiple.
  return Number(value.toPrecision(15));
}

interface NumberRange {
  readonly lowest: number;
  readonly highest: number;
  readonly excludesLowest: boolean;
  readonly excludesHighest: boolean;
}

const usualSpan = 100;

function rangeOf(schema: JsonRecord): NumberRange {
  const minimum = numberOf(schema["minimum"]) ?? Number.NEGATIVE_INFINITY;
  const above = numberOf(schema["exclusiveMinimum"]) ?? Number.NEGATIVE_INFINITY;
  const maximum = numberOf(schema["maximum"]) ?? Number.POSITIVE_INFINITY;
  const below = numberOf(schema["exclusiveMaximum"]) ?? Number.POSITIVE_INFINITY;
  const lowest = Math.max(minimum, above);
  const highest = Math.min(maximum, below);
  const isOpen = lowest === Number.NEGATIVE_INFINITY;
  return {
    lowest: isOpen ? (highest === Infinity ? 1 : highest - usualSpan) : lowest,
    highest: highest === Infinity ? (isOpen ? usualSpan : lowest + usualSpan) : highest,
    excludesLowest: !isOpen && above >= minimum,
    excludesHighest: highest !== Infinity && below <= maximum,
  };
}

function decimalWithin(range: NumberRange, random: Random): number {
  const share = 0.1 + random.next() * 0.8;
  const exact = range.lowest + (range.highest - range.lowest) * share;
  const rounded = Math.round(exact * 100) / 100;
  return rounded > range.lowest && rounded < range.highest ? rounded : exact;
}

/** One schema with the constraints of both, as far as they can be combined. */
function mergeSchemas(first: JsonRecord, second: JsonRecord): JsonRecord {
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
