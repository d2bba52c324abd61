import {
  isObject,
  type JsonObject,
  listOf,
  numberOf,
  objectOf,
} from "../../../domain/json-fields.ts";
import { referenced } from "../../shared/answer-format/provider-schema.ts";

/**
 * Steps of one check, because the schema is the caller's, and the time of some schemas doubles with
 * each line.
 */
const mostSteps = 500_000;
/** Depth of schemas within schemas, references followed. */
const mostDepth = 256;
/** Characters of a text that one step reads. */
const charactersPerStep = 64;
/** Characters of a reference that one step follows. */
const referenceCharactersPerStep = 8;

/** The result instead of a keyword when a check takes too many steps. */
export const tooMuch = "more than can be checked";

/**
 * The keyword of a JSON schema (2020-12) that a value fails; undefined when it matches. Not
 * checked: regular expressions, which can take any time; formats, which are annotations; references
 * out of the schema; `$dynamicRef` and `unevaluated` keywords.
 */
export function failedKeyword(value: unknown, schema: JsonObject): string | undefined {
  try {
    return new SchemaCheck(schema).failed(value, schema, 0);
  } catch (error) {
    if (error instanceof TooMuch) return tooMuch;
    throw error;
  }
}

class TooMuch extends Error {
  override readonly name = "TooMuch";
}

/** Keywords that fail because one of their parts does; the part's keyword is reported. */
const partKeywords: ReadonlySet<string> = new Set([
  "$ref",
  "allOf",
  "properties",
  "additionalProperties",
  "items",
  "prefixItems",
]);

type Check = (
  value: unknown,
  wanted: unknown,
  context: { readonly schema: JsonObject; readonly depth: number },
) => boolean;

class SchemaCheck {
  readonly #root: JsonObject;
  #steps = 0;
  /** The keyword that the part checked last has failed. */
  #failedPart: string | undefined;

  constructor(root: JsonObject) {
    this.#root = root;
  }

  failed(value: unknown, schema: unknown, depth: number): string | undefined {
    this.#spend(1 + extentOf(value));
    if (depth > mostDepth) throw new TooMuch();
    if (schema === false) return "false";
    if (!isObject(schema)) return undefined;
    for (const [keyword, wanted] of Object.entries(schema)) {
      this.#spend(1 + extentOf(wanted));
      const check = this.#checks.get(keyword);
      if (check?.(value, wanted, { schema, depth: depth + 1 }) !== false) continue;
      return partKeywords.has(keyword) ? (this.#failedPart ?? keyword) : keyword;
    }
    return undefined;
  }

  #fits(value: unknown, schema: unknown, depth: number): boolean {
    const keyword = this.failed(value, schema, depth);
    this.#failedPart = keyword === "false" ? undefined : keyword;
    return keyword === undefined;
  }

  #spend(steps: number): void {
    this.#steps += steps;
    if (this.#steps > mostSteps) throw new TooMuch();
  }

  readonly #checks = checksByKeyword({
    $ref: (value, reference, { depth }) => {
      if (typeof reference !== "string") return true;
      this.#spend(reference.length / referenceCharactersPerStep);
      return this.#fits(value, referenced(this.#root, reference), depth);
    },
    type: (value, type) => {
      const types = listOf(type) ?? [type];
      return types.some((name) => isOfType(value, name));
    },
    enum: (value, list) => listOf(list)?.some((item) => this.#equal(value, item)) ?? true,
    const: (value, wanted) => this.#equal(value, wanted),
    allOf: (value, list, { depth }) =>
      (listOf(list) ?? []).every((part) => this.#fits(value, part, depth)),
    anyOf: (value, list, { depth }) =>
      listOf(list)?.some((part) => this.#fits(value, part, depth)) ?? true,
    oneOf: (value, list, { depth }) =>
      listOf(list) === undefined ||
      listOf(list)?.filter((part) => this.#fits(value, part, depth)).length === 1,
    not: (value, part, { depth }) => !this.#fits(value, part, depth),
    if: (value, part, { schema, depth }) =>
      this.#fits(value, schema[this.#fits(value, part, depth) ? "then" : "else"], depth),

    minimum: ofNumbers((value, least) => value >= least),
    maximum: ofNumbers((value, most) => value <= most),
    exclusiveMinimum: ofNumbers((value, least) => value > least),
    exclusiveMaximum: ofNumbers((value, most) => value < most),
    multipleOf: ofNumbers((value, unit) => unit <= 0 || isMultiple(value, unit)),

    minLength: (text, least) => isAtLeast(this.#lengthOf(text), least),
    maxLength: (text, most) => isAtMost(this.#lengthOf(text), most),

    minItems: (list, least) => isAtLeast(listOf(list)?.length, least),
    maxItems: (list, most) => isAtMost(listOf(list)?.length, most),
    uniqueItems: (list, isWanted) => isWanted !== true || this.#isUnique(listOf(list) ?? []),
    prefixItems: (list, parts, { depth }) => this.#fitsTuple(list, parts, depth),
    items: (list, part, { schema, depth }) => {
      // Before 2020-12, tuples were written here.
      if (Array.isArray(part)) return this.#fitsTuple(list, part, depth);
      const start = listOf(schema["prefixItems"])?.length ?? 0;
      return (listOf(list) ?? []).slice(start).every((item) => this.#fits(item, part, depth));
    },
    contains: (list, part, { schema, depth }) => {
      const items = listOf(list);
      if (items === undefined) return true;
      const count = items.filter((item) => this.#fits(item, part, depth)).length;
      return (
        count >= (numberOf(schema["minContains"]) ?? 1) && isAtMost(count, schema["maxContains"])
      );
    },

    required: (value, names) => !isObject(value) || hasFields(value, names),
    properties: (value, parts, { depth }) =>
      Object.entries(objectOf(parts) ?? {}).every(
        ([name, part]) =>
          !isObject(value) || !Object.hasOwn(value, name) || this.#fits(value[name], part, depth),
      ),
    additionalProperties: (value, part, { schema, depth }) => {
      // The names are matched by expressions.
      if (!isObject(value) || isObject(schema["patternProperties"])) return true;
      const known = objectOf(schema["properties"]) ?? {};
      return Object.entries(value).every(
        ([name, item]) => Object.hasOwn(known, name) || this.#fits(item, part, depth),
      );
    },
    propertyNames: (value, part, { depth }) =>
      Object.keys(objectOf(value) ?? {}).every((name) => this.#fits(name, part, depth)),
    minProperties: (value, least) => isAtLeast(sizeOf(value), least),
    maxProperties: (value, most) => isAtMost(sizeOf(value), most),
    dependentRequired: (value, lists) =>
      Object.entries(objectOf(lists) ?? {}).every(
        ([name, names]) =>
          !isObject(value) || !Object.hasOwn(value, name) || hasFields(value, names),
      ),
    dependentSchemas: (value, parts, { depth }) =>
      Object.entries(objectOf(parts) ?? {}).every(
        ([name, part]) =>
          !isObject(value) || !Object.hasOwn(value, name) || this.#fits(value, part, depth),
      ),
  });

  #fitsTuple(list: unknown, parts: unknown, depth: number): boolean {
    const wanted = listOf(parts) ?? [];
    return (listOf(list) ?? []).every(
      (item, index) => index >= wanted.length || this.#fits(item, wanted[index], depth),
    );
  }

  /** In characters as JSON Schema counts them: code points. */
  #lengthOf(text: unknown): number | undefined {
    if (typeof text !== "string") return undefined;
    this.#spend(text.length / charactersPerStep);
    let length = 0;
    for (const _character of text) length += 1;
    return length;
  }

  #isUnique(list: readonly unknown[]): boolean {
    return list.every((item, index) =>
      list.slice(index + 1).every((other) => !this.#equal(item, other)),
    );
  }

  #equal(one: unknown, other: unknown): boolean {
    this.#spend(1);
    if (Array.isArray(one) && Array.isArray(other)) {
      return (
        one.length === other.length && one.every((item, index) => this.#equal(item, other[index]))
      );
    }
    if (!isObject(one) || !isObject(other)) return one === other;
    const names = Object.keys(one);
    return (
      names.length === Object.keys(other).length &&
      names.every((name) => Object.hasOwn(other, name) && this.#equal(one[name], other[name]))
    );
  }
}

/** Not a plain object: keywords come from the caller, and `constructor` is not one. */
function checksByKeyword(checks: Readonly<Record<string, Check>>): ReadonlyMap<string, Check> {
  return new Map(Object.entries(checks));
}

function isOfType(value: unknown, type: unknown): boolean {
  switch (type) {
    case "object":
      return isObject(value);
    case "array":
      return Array.isArray(value);
    case "integer":
      return Number.isInteger(value);
    case "null":
      return value === null;
    case "string":
    case "number":
    case "boolean":
      return typeof value === type;
    default:
      return true;
  }
}

function ofNumbers(holds: (value: number, wanted: number) => boolean): Check {
  return (value, wanted) =>
    typeof value !== "number" || typeof wanted !== "number" || holds(value, wanted);
}

/** Fractions such as 0.1 have no exact number. */
function isMultiple(value: number, unit: number): boolean {
  const times = value / unit;
  return Math.abs(times - Math.round(times)) <= Math.abs(times) * 1e-12;
}

function isAtLeast(size: number | undefined, least: unknown): boolean {
  return size === undefined || typeof least !== "number" || size >= least;
}

function isAtMost(size: number | undefined, most: unknown): boolean {
  return size === undefined || typeof most !== "number" || size <= most;
}

function hasFields(value: JsonObject, names: unknown): boolean {
  return (listOf(names) ?? []).every(
    (name) => typeof name !== "string" || Object.hasOwn(value, name),
  );
}

/** How many values a list or an object has. */
function extentOf(value: unknown): number {
  return listOf(value)?.length ?? sizeOf(value) ?? 0;
}

function sizeOf(value: unknown): number | undefined {
  return isObject(value) ? Object.keys(value).length : undefined;
}
