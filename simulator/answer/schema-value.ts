import {
  isList,
  isRecord,
  type JsonRecord,
  listOf,
  numberOf,
  recordOf,
  stringOf,
} from "../json.ts";
import type { Random } from "./random.ts";

export interface ValueSource {
  readonly random: Random;
  readonly hints: TextHints;
}

/** Texts of the conversation that may fill text fields. */
interface TextHints {
  readonly userText: string;
  readonly names: readonly string[];
  readonly words: readonly string[];
}

/** From this depth on optional parts are omitted, so that recursive schemas end. */
const requiredOnlyDepth = 3;
const maxDepth = 32;

/** A valid JSON value for a JSON Schema, of the subset that structured output and most tools use. */
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
    const { random } = this.#source;
    const schema = this.#flatten(recordOf(schemaOrFlag), depth);
    if ("const" in schema) return schema["const"];
    const allowed = listOf(schema["enum"]);
    if (allowed.length > 0) return random.pickAny(allowed);
    switch (this.#typeOf(schema, depth)) {
      case "object":
        return this.#object(schema, depth);
      case "array":
        return this.#array(schema, fieldName, depth);
      case "integer":
        return numberWithin(schema, random, 1);
      case "number":
        return numberWithin(schema, random, 0.01);
      case "boolean":
        return random.chance(0.5);
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
        flat = merged(withoutReference, this.#resolve(reference));
      } else if (keyword === undefined) {
        return flat;
      } else {
        const { [keyword]: listed, ...rest } = flat;
        const parts = listOf(listed);
        const chosen = keyword === "allOf" ? parts : [this.#alternative(parts, depth)];
        flat = chosen.map(recordOf).reduce(merged, rest);
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
    const properties = recordOf(schema["properties"]);
    const required = listOf(schema["required"]).map(stringOf);
    const optional = Object.keys(properties).filter(
      (name) =>
        !required.includes(name) && depth < requiredOnlyDepth && this.#source.random.chance(0.6),
    );
    const rule = (name: string): unknown =>
      Object.hasOwn(properties, name) ? properties[name] : schema["additionalProperties"];
    return Object.fromEntries(
      [...required, ...optional].map((name) => [
        name,
        this.write(rule(name) || {}, name, depth + 1),
      ]),
    );
  }

  #array(schema: JsonRecord, fieldName: string, depth: number): unknown[] {
    const lowest = numberOf(schema["minItems"]) ?? 0;
    const wished = depth < requiredOnlyDepth ? this.#source.random.integer(1, 2) : 0;
    const size = Math.min(numberOf(schema["maxItems"]) ?? Infinity, Math.max(lowest, wished));
    const rule = schema["items"] ?? {};
    return Array.from({ length: size }, () => this.write(rule, fieldName, depth + 1));
  }
}

function isLeaf(schema: JsonRecord): boolean {
  const nested = ["$ref", "allOf", "anyOf", "oneOf", "properties", "items"];
  return schema["type"] !== "object" && !nested.some((keyword) => keyword in schema);
}

function typeByKeywords(schema: JsonRecord): string {
  if ("properties" in schema || "required" in schema) return "object";
  if ("items" in schema) return "array";
  return "minimum" in schema || "maximum" in schema ? "number" : "string";
}

/** The constraints of both; of a keyword that both have, the later one's. */
function merged(first: JsonRecord, second: JsonRecord): JsonRecord {
  return {
    ...first,
    ...second,
    ...("properties" in first && "properties" in second
      ? { properties: { ...recordOf(first["properties"]), ...recordOf(second["properties"]) } }
      : {}),
    ...("required" in first && "required" in second
      ? { required: [...listOf(first["required"]), ...listOf(second["required"])] }
      : {}),
  };
}

const usualSpan = 100;

/** A multiple of the step within the bounds of a schema, which may exclude themselves. */
function numberWithin(schema: JsonRecord, random: Random, step: number): number {
  const { minimum, maximum, exclusiveMinimum: above, exclusiveMaximum: below } = schema;
  const least = numberOf(minimum) ?? numberOf(above);
  const most = numberOf(maximum) ?? numberOf(below);
  const lowest = least ?? (most === undefined ? 1 : most - usualSpan);
  const highest = most ?? lowest + usualSpan;
  const first = Math.ceil(lowest / step) + (numberOf(above) === lowest ? 1 : 0);
  const last = Math.floor(highest / step) - (numberOf(below) === highest ? 1 : 0);
  // Rounds the error of binary fractions away.
  return Number((random.integer(first, Math.max(first, last)) * step).toPrecision(15));
}

/** A text for a string schema: by its format, else by the field's name. */
function plausibleText(schema: JsonRecord, fieldName: string, source: ValueSource): string {
  const lowest = numberOf(schema["minLength"]) ?? 0;
  const highest = numberOf(schema["maxLength"]) ?? Number.POSITIVE_INFINITY;
  const format = formats[stringOf(schema["format"])]?.(source.random.integer(10, 28));
  // JSON Schema counts characters, not UTF-16 units.
  const characters = Array.from(format ?? textForField(fieldName, source));
  while (characters.length < lowest) characters.push("x");
  return characters.slice(0, highest).join("");
}

const formats: Readonly<Record<string, (number: number) => string>> = {
  "date-time": (day) => `2026-03-${day}T09:30:00Z`,
  date: (day) => `2026-03-${day}`,
  time: () => "09:30:00Z",
  duration: (minutes) => `PT${minutes}M`,
  email: (number) => `person${number}@example.com`,
  hostname: (number) => `host${number}.example.com`,
  ipv4: (number) => `192.0.2.${number}`,
  ipv6: (number) => `2001:db8::${number}`,
  uri: (number) => `https://example.com/items/${number}`,
  uuid: (number) => `5f6c1c4e-8d2a-4b7e-a1c3-0000000000${number}`,
};

function textForField(fieldName: string, { random, hints }: ValueSource): string {
  if (/query|question|prompt|text|message|content|body|input|command/i.test(fieldName)) {
    return hints.userText.trim().replace(/\s+/g, " ").slice(0, 120) || "anything new";
  }
  const known = hints.names.length > 0 ? hints.names : hints.words;
  return random.pickAny(known) ?? `word${random.integer(1, 9)}`;
}
