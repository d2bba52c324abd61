import { mergeSchemas } from "./merge-schemas.ts";
import { plausibleText, type TextHints } from "./plausible-text.ts";
import type { Random } from "../random.ts";
import { numberForSchema } from "./schema-number.ts";
import { isList, isRecord, listOf, numberOf, recordOf, type JsonRecord } from "../../read-json.ts";

export interface ValueSource {
  readonly random: Random;
  readonly hints: TextHints;
}

/** Below this depth optional parts are left out, so that recursive schemas come to an end. */
const frugalDepth = 3;
const deepest = 32;

/** A JSON value that a JSON Schema accepts: the subset that tools and structured output use. */
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
    if (depth > deepest || schemaOrFlag === false) return null;
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
    for (let step = 0; step < deepest; step++) {
      const { $ref: reference, allOf, anyOf, oneOf, ...rest } = flat;
      if (typeof reference === "string") {
        flat = mergeSchemas({ ...rest, ...present({ allOf, anyOf, oneOf }) }, this.#at(reference));
      } else if (isList(allOf)) {
        const base: JsonRecord = { ...rest, ...present({ anyOf, oneOf }) };
        flat = allOf.map((part) => recordOf(part)).reduce(mergeSchemas, base);
      } else if (isList(anyOf)) {
        flat = mergeSchemas({ ...rest, ...present({ oneOf }) }, this.#alternative(anyOf, depth));
      } else if (isList(oneOf)) {
        flat = mergeSchemas(rest, this.#alternative(oneOf, depth));
      } else {
        return flat;
      }
    }
    return flat;
  }

  #at(reference: string): JsonRecord {
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
    if (depth >= frugalDepth && plain.length > 0) return plain[0] ?? {};
    const full = schemas.filter((schema) => schema["type"] !== "null");
    return this.#source.random.pickAny(full) ?? schemas[0] ?? {};
  }

  #typeOf(schema: JsonRecord, depth: number): unknown {
    const type = schema["type"];
    if (!isList(type)) return type ?? typeByKeywords(schema);
    if (depth >= frugalDepth && type.includes("null")) return "null";
    return this.#source.random.pickAny(type.filter((name) => name !== "null")) ?? "null";
  }

  #object(schema: JsonRecord, depth: number): JsonRecord {
    const properties = recordOf(schema["properties"]);
    const required = listOf(schema["required"]).filter((name) => typeof name === "string");
    const room = numberOf(schema["maxProperties"]) ?? Number.POSITIVE_INFINITY;
    // Entries, so that a property called `__proto__` stays a property.
    const entries = new Map<string, unknown>();
    for (const name of required) {
      entries.set(name, this.write(this.#propertySchema(schema, name), name, depth + 1));
    }
    for (const name of Object.keys(properties)) {
      const isWanted = depth < frugalDepth && this.#source.random.chance(0.6);
      if (entries.has(name) || entries.size >= room || !isWanted) continue;
      entries.set(name, this.write(properties[name], name, depth + 1));
    }
    this.#fillUp(schema, entries, depth);
    return Object.fromEntries(entries);
  }

  /** Adds properties until `minProperties` is met. */
  #fillUp(schema: JsonRecord, entries: Map<string, unknown>, depth: number): void {
    const lowest = numberOf(schema["minProperties"]) ?? 0;
    const known = Object.keys(recordOf(schema["properties"]));
    const names = known.filter((name) => !entries.has(name));
    for (let number = 1; entries.size + names.length < lowest; number++) {
      if (!known.includes(`extra${number}`)) names.push(`extra${number}`);
    }
    for (const name of names.slice(0, Math.max(0, lowest - entries.size))) {
      entries.set(name, this.write(this.#propertySchema(schema, name), name, depth + 1));
    }
  }

  #propertySchema(schema: JsonRecord, name: string): unknown {
    const properties = recordOf(schema["properties"]);
    if (Object.hasOwn(properties, name)) return properties[name];
    for (const [pattern, value] of Object.entries(recordOf(schema["patternProperties"]))) {
      if (new RegExp(pattern, "u").test(name)) return value;
    }
    return isRecord(schema["additionalProperties"]) ? schema["additionalProperties"] : {};
  }

  #array(schema: JsonRecord, fieldName: string, depth: number): unknown[] {
    const leading = listOf(schema["prefixItems"]);
    const lowest = Math.max(
      numberOf(schema["minItems"]) ?? 0,
      isRecord(schema["contains"]) ? 1 : 0,
    );
    const highest = numberOf(schema["maxItems"]) ?? Math.max(lowest, leading.length, 2);
    const wished =
      depth < frugalDepth ? Math.max(this.#source.random.integer(1, 2), lowest) : lowest;
    const size = Math.min(schema["items"] === false ? leading.length : highest, wished);
    const items: unknown[] = [];
    const known = new Set<string>();
    for (let attempt = 0; items.length < size && attempt < size + 200; attempt++) {
      const index = items.length;
      const rule = leading[index] ?? (index === 0 ? schema["contains"] : undefined);
      const item = this.write(rule ?? schema["items"] ?? {}, fieldName, depth + 1);
      const text = JSON.stringify(item);
      if (schema["uniqueItems"] === true && known.has(text)) continue;
      known.add(text);
      items.push(item);
    }
    return items;
  }
}

function present(keywords: JsonRecord): JsonRecord {
  return Object.fromEntries(Object.entries(keywords).filter(([, value]) => value !== undefined));
}

function isLeaf(schema: JsonRecord): boolean {
  const isNested = ["$ref", "allOf", "anyOf", "oneOf", "properties", "items"].some(
    (keyword) => keyword in schema,
  );
  return !isNested && schema["type"] !== "object";
}

function typeByKeywords(schema: JsonRecord): string {
  const hasAny = (...keywords: readonly string[]): boolean =>
    keywords.some((keyword) => keyword in schema);
  if (hasAny("properties", "required", "additionalProperties", "minProperties")) return "object";
  if (hasAny("items", "prefixItems", "minItems", "contains")) return "array";
  if (hasAny("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")) {
    return "number";
  }
  return "string";
}
