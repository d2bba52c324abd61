import keywords from "./keywords.json" with { type: "json" };
import {
  isObject,
  type JsonObject,
  listOf,
  objectOf,
  textOf,
} from "../../../domain/json-fields.ts";

/**
 * The part of a JSON schema that the provider enforces while an answer is written. Constraints that
 * it refuses are moved into descriptions, and objects that the schema leaves open are closed.
 * Undefined for a schema whose meaning would change: one that contains itself, or has objects with
 * arbitrary names, values of any kind, or several parts that must all match.
 *
 * Source: "JSON Schema limitations" of the model's documents on structured outputs.
 */
export function providerSchema(schema: JsonObject): JsonObject | undefined {
  if (isRecursive(schema)) return undefined;
  try {
    return narrowed(schema);
  } catch (error) {
    if (error instanceof Inexpressible) return undefined;
    throw error;
  }
}

class Inexpressible extends Error {
  override readonly name = "Inexpressible";
}

function narrowed(value: unknown): JsonObject {
  if (!isObject(value)) throw new Inexpressible("a schema that allows everything or nothing");
  const schema = withoutAllOf(value);
  if ("anyOf" in schema && "oneOf" in schema) throw new Inexpressible("two lists of alternatives");
  const kept = new Map<string, unknown>();
  const words: string[] = [];
  for (const [keyword, value] of Object.entries(schema)) {
    const { isKept, isDescribed = !isKept, as = value, under = keyword } = read(keyword, value);
    if (isKept) kept.set(under, as);
    if (isDescribed) words.push(constraintWords(keyword, value));
  }
  if (!kindKeywords.some((keyword) => kept.has(keyword))) {
    throw new Inexpressible("a value of any kind");
  }
  if (describesObject(schema)) close(schema, kept);
  if (words.length > 0) {
    kept.set("description", withWords(textOf(schema["description"]), words));
  }
  return Object.fromEntries(kept);
}

/** How one keyword is handled: kept, described in words, or both. */
interface Reading {
  readonly isKept: boolean;
  readonly isDescribed?: boolean;
  /** The changed value, and its keyword if that changes too. */
  readonly as?: unknown;
  readonly under?: string;
}

const keep: Reading = { isKept: true };
const describe: Reading = { isKept: false };

function read(keyword: string, value: unknown): Reading {
  if (mapKeywords.has(keyword)) return { isKept: true, as: narrowedMap(value) };
  switch (keyword) {
    case "items":
      return { isKept: true, as: narrowed(value) };
    case "anyOf":
      return { isKept: true, as: (listOf(value) ?? []).map(narrowed) };
    case "oneOf":
      return {
        isKept: true,
        isDescribed: true,
        as: (listOf(value) ?? []).map(narrowed),
        under: "anyOf",
      };
    case "enum":
      if (listOf(value)?.some(isCompound) === true) throw new Inexpressible("a choice of objects");
      return keep;
    case "const":
      if (isCompound(value)) throw new Inexpressible("a constant object");
      return keep;
    case "$ref":
      if (textOf(value)?.startsWith("#") !== true) throw new Inexpressible("a reference elsewhere");
      return keep;
    case "additionalProperties":
      if (value !== false) throw new Inexpressible("an object with free names");
      return keep;
    case "patternProperties":
      throw new Inexpressible("an object with free names");
    case "minItems":
      if (value === 0 || value === 1) return keep;
      return typeof value === "number" && value > 1
        ? { isKept: true, isDescribed: true, as: 1 }
        : describe;
    case "format":
      return formats.has(textOf(value) ?? "") ? keep : describe;
    case "pattern":
      return isSimplePattern(textOf(value) ?? "") ? keep : describe;
    default:
      return numberWords.has(keyword) || refused.has(keyword) ? describe : keep;
  }
}

function narrowedMap(value: unknown): JsonObject {
  const entries = Object.entries(objectOf(value) ?? {});
  return Object.fromEntries(entries.map(([name, schema]) => [name, narrowed(schema)]));
}

/** A single part means the same without `allOf`, inside which references are refused. */
function withoutAllOf(schema: JsonObject): JsonObject {
  const { allOf, ...rest } = schema;
  if (allOf === undefined) return schema;
  const [part, ...others] = listOf(allOf) ?? [];
  const isAlone = others.length === 0 && isObject(part);
  // Closed objects that must all match would match nothing.
  if (!isAlone) throw new Inexpressible("several schemas that must all fit");
  const clashes = Object.keys(part).some((name) => name !== "description" && name in rest);
  if (clashes) throw new Inexpressible("two schemas that must both fit");
  return withoutAllOf({ ...part, ...rest });
}

function close(schema: JsonObject, kept: Map<string, unknown>): void {
  const isEmpty = Object.keys(objectOf(schema["properties"]) ?? {}).length === 0;
  if (isEmpty && schema["additionalProperties"] !== false) {
    throw new Inexpressible("an object with free names");
  }
  kept.set("additionalProperties", false);
}

function describesObject(schema: JsonObject): boolean {
  const { type } = schema;
  return type === "object" || listOf(type)?.includes("object") === true || "properties" in schema;
}

function isCompound(value: unknown): boolean {
  return typeof value === "object" && value !== null;
}

/** One of these determines the kind of the value. */
const kindKeywords = ["type", "enum", "const", "anyOf", "$ref", "properties"] as const;

/** Beside the bounds of numbers and lengths. */
const refused: ReadonlySet<string> = new Set(keywords.refused);

const formats: ReadonlySet<string> = new Set(keywords.formats);

const largestRepetition = 100;

/**
 * Whether an expression contains only what the documents name as supported: classes, plain groups,
 * `\d`, `\w`, `\s`, escaped signs, and small repetitions.
 */
function isSimplePattern(pattern: string): boolean {
  if (pattern === "" || /\(\?|\\[^dws\W_]|[*+?}][?+]/.test(pattern)) return false;
  const counts = [...pattern.matchAll(/\{(\d+)(?:,(\d*))?\}/g)];
  return counts.every(([, least, most]) => Number(most || least) <= largestRepetition);
}

/**
 * A constraint of a JSON schema in words, for a model that does not enforce it. Source of the
 * keywords: JSON Schema 2020-12, "Validation".
 */
function constraintWords(keyword: string, value: unknown): string {
  if (typeof value === "number" && numberWords.has(keyword)) {
    const [before = "", one = "", several = ""] = numberWords.get(keyword) ?? [];
    return `${before} ${value} ${value === 1 ? one : several}`.trimEnd();
  }
  if (typeof value === "string") {
    if (keyword === "pattern") return `matches the regular expression ${value}`;
    if (keyword === "format") return `in the format ${value}`;
  }
  if (keyword === "uniqueItems" && value === true) return "no two items alike";
  if (keyword === "oneOf") return "fits exactly one of the alternatives";
  return `fits the JSON schema ${JSON.stringify({ [keyword]: value })}`;
}

/** A description with constraints after it. */
function withWords(description: string | undefined, words: readonly string[]): string {
  const joined = words.join("; ");
  if (description === undefined || description.trim() === "") {
    return joined.charAt(0).toUpperCase() + joined.slice(1);
  }
  return `${description} (${joined})`;
}

/** What stands before a number, and what is counted: one, or several. */
const numberWords: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries(keywords.numbers),
);

/** Keywords whose value is schemas by name. The names are the caller's, not keywords. */
const mapKeywords: ReadonlySet<string> = new Set(["properties", "$defs", "definitions"]);

/** The schemas directly within a schema, its references not followed. */
function childrenOf(schema: JsonObject): readonly unknown[] {
  const lists = ["anyOf", "oneOf", "allOf", "prefixItems"].flatMap(
    (keyword) => listOf(schema[keyword]) ?? [],
  );
  const named = [...mapKeywords, "patternProperties"].flatMap((keyword) =>
    Object.values(objectOf(schema[keyword]) ?? {}),
  );
  return [...lists, ...named, schema["items"], schema["additionalProperties"]];
}

/** The value in `root` of a reference such as `#/$defs/address`; undefined outside it. */
export function referenced(root: JsonObject, reference: string): unknown {
  if (!reference.startsWith("#")) return undefined;
  let found: unknown = root;
  for (const step of reference.slice(1).split("/").slice(1)) {
    const name = decoded(step).replaceAll("~1", "/").replaceAll("~0", "~");
    found = Array.isArray(found) ? found[Number(name)] : ownValue(found, name);
  }
  return found;
}

/**
 * Whether a schema contains itself. Without recursion, because a caller can chain any number of
 * references.
 */
function isRecursive(root: JsonObject): boolean {
  const active = new Set<JsonObject>();
  const done = new Set<JsonObject>();
  const visits: Visit[] = [{ schema: root, isLeaving: false }];
  for (let visit = visits.pop(); visit !== undefined; visit = visits.pop()) {
    const { schema, isLeaving } = visit;
    if (isLeaving) {
      active.delete(schema);
      done.add(schema);
      continue;
    }
    if (active.has(schema)) return true;
    if (done.has(schema)) continue;
    active.add(schema);
    visits.push({ schema, isLeaving: true });
    for (const part of [targetOf(schema, root), ...childrenOf(schema)]) {
      if (isObject(part)) visits.push({ schema: part, isLeaving: false });
    }
  }
  return false;
}

/** A schema is entered before its parts and left after them. */
interface Visit {
  readonly schema: JsonObject;
  readonly isLeaving: boolean;
}

function targetOf({ $ref: reference }: JsonObject, root: JsonObject): unknown {
  return typeof reference === "string" ? referenced(root, reference) : undefined;
}

function ownValue(found: unknown, name: string): unknown {
  return isObject(found) && Object.hasOwn(found, name) ? found[name] : undefined;
}

/** A step that is not valid percent-encoding is taken literally. */
function decoded(step: string): string {
  try {
    return decodeURIComponent(step);
  } catch {
    return step;
  }
}
