/**
 * Checks of JSON values. A check copies nothing, ignores unknown fields, and returns the first
 * violation or nothing. It is built once and allocates only when it fails. Null means absent: a
 * field of an object is removed if it is null and not required. Refusals are worded as OpenAI's,
 * because clients match on parts of them.
 */
import { isObject, type JsonObject } from "../../domain/json-object.ts";
import { GatewayError, type GatewayErrorName } from "../../domain/errors/gateway-error.ts";

export type Check = (value: unknown) => Violation | undefined;
type Fields = Readonly<Record<string, Check>>;

export function wrongType(expected: string, value: unknown): Violation {
  const got = kindOf(value);
  return new Violation(
    "invalid_type",
    (path) => `Invalid type for '${path}': expected ${expected}, but got ${got} instead.`,
  );
}

export function missing(name: string, advice = ""): Violation {
  return new Violation(
    "missing_required_parameter",
    (path) => `Missing required parameter: '${path}'.${advice}`,
  ).insideField(name);
}

interface TextRules {
  /** In characters, not in UTF-16 code units. */
  readonly maximumLength?: number;
  readonly pattern?: RegExp;
  readonly mayBeEmpty?: boolean;
}

export function text(rules: TextRules = {}): Check {
  const { maximumLength = Infinity, pattern, mayBeEmpty = true } = rules;
  return (value) => {
    if (typeof value !== "string") return wrongType("a string", value);
    if (value.length === 0 && !mayBeEmpty) {
      return new Violation(
        "empty_string",
        (path) =>
          `Invalid '${path}': empty string. Expected a string with minimum length 1, ` +
          "but got an empty string instead.",
      );
    }
    if (value.length > maximumLength) {
      const length = countCharacters(value);
      if (length > maximumLength) {
        return new Violation(
          "string_above_max_length",
          (path) =>
            `Invalid '${path}': string too long. Expected a string with maximum length ` +
            `${maximumLength}, but got a string with length ${length} instead.`,
        );
      }
    }
    if (pattern !== undefined && !pattern.test(value)) {
      return new Violation(
        "invalid_value",
        (path) =>
          `Invalid '${path}': string does not match pattern. ` +
          `Expected a string that matches the pattern '${pattern.source}'.`,
      );
    }
    return undefined;
  };
}

interface Range {
  readonly minimum?: number;
  readonly maximum?: number;
}

export function decimal(range: Range): Check {
  return number("decimal", range);
}

/** Whole numbers; JSON does not distinguish 1.0 from 1. */
export function integer(range: Range = {}): Check {
  return number("integer", range);
}

const words = { integer: "an integer", decimal: "a decimal" } as const;

function number(kind: "integer" | "decimal", range: Range): Check {
  const { minimum = -Infinity, maximum = Infinity } = range;
  const invalid = (bound: "below_min" | "above_max", what: string, value: number): Violation =>
    new Violation(
      `${kind}_${bound}_value`,
      (path) => `Invalid '${path}': ${kind} ${what}, but got ${value} instead.`,
    );
  return (value) => {
    if (typeof value !== "number") return wrongType(words[kind], value);
    if (kind === "integer" && !Number.isInteger(value)) return wrongType(words[kind], value);
    if (value < minimum) {
      return invalid("below_min", `below minimum value. Expected a value >= ${minimum}`, value);
    }
    if (value > maximum) {
      return invalid("above_max", `above maximum value. Expected a value <= ${maximum}`, value);
    }
    return undefined;
  };
}

export const boolean: Check = (value) =>
  typeof value === "boolean" ? undefined : wrongType("a boolean", value);

export function oneOf(supported: readonly string[]): Check {
  const set = new Set<unknown>(supported);
  return (value) => (set.has(value) ? undefined : outsideSet(value, supported));
}

export const anyObject: Check = (value) =>
  isObject(value) ? undefined : wrongType("an object", value);

interface ObjectRules {
  /** Checked first, in this order. */
  readonly required?: Fields;
  /** Checked in the order of the body. */
  readonly optional?: Fields;
}

export function object({ required = {}, optional = {} }: ObjectRules = {}): Check {
  const requiredFields = new Map(Object.entries(required));
  const optionalFields = new Map(Object.entries(optional));
  return (value) => {
    if (!isObject(value)) return wrongType("an object", value);
    for (const [name, check] of requiredFields) {
      const field = value[name];
      if (field === undefined) return missing(name);
      const violation = check(field);
      if (violation !== undefined) return violation.insideField(name);
    }
    for (const name of Object.keys(value)) {
      const field = value[name];
      if (field === null) {
        if (!requiredFields.has(name)) Reflect.deleteProperty(value, name);
        continue;
      }
      const violation = field === undefined ? undefined : optionalFields.get(name)?.(field);
      if (violation !== undefined) return violation.insideField(name);
    }
    return undefined;
  };
}

/** `rest` checks what has passed the first check. */
export function both(first: Check, rest: (object: JsonObject) => Violation | undefined): Check {
  return (value) => first(value) ?? (isObject(value) ? rest(value) : undefined);
}

/** Objects whose type selects the check of the others; new types pass. */
export function knownTypes(cases: Fields, typeOf = ownType): Check {
  const checks = new Map<unknown, Check>(Object.entries(cases));
  return (value) => {
    const check = isObject(value) ? checks.get(typeOf(value)) : undefined;
    return (check ?? typed)(value);
  };
}

const typed = object({ required: { type: text() } });

function ownType({ type }: JsonObject): unknown {
  return type;
}

/** Objects whose field `tag` selects the check of the others. */
export function tagged(tag: string, cases: Fields): Check {
  const supported = Object.keys(cases);
  const checks = new Map<unknown, Check>(Object.entries(cases));
  return (value) => {
    if (!isObject(value)) return wrongType("an object", value);
    const kind = value[tag];
    const check = checks.get(kind);
    if (check !== undefined) return check(value);
    return kind === undefined ? missing(tag) : outsideSet(kind, supported).insideField(tag);
  };
}

interface ListRules {
  /** Name of the items in the plural, such as "objects" or "strings". */
  readonly of: string;
  readonly mayBeEmpty?: boolean;
  readonly maximumLength?: number;
}

export function list(item: Check, rules: ListRules): Check {
  const { of, mayBeEmpty = false, maximumLength = Infinity } = rules;
  return (value) => {
    if (!Array.isArray(value)) return wrongType(`an array of ${of}`, value);
    const items: readonly unknown[] = value;
    if (items.length === 0 && !mayBeEmpty) return emptyArray();
    if (items.length > maximumLength) return arrayTooLong(maximumLength, items.length);
    for (let index = 0; index < items.length; index += 1) {
      const violation = item(items[index]);
      if (violation !== undefined) return violation.insideItem(index);
    }
    return undefined;
  };
}

/** A string or a list: two forms of the same field. */
export function textOrList(item: Check, rules: ListRules): Check {
  const items = list(item, rules);
  const expected = `one of a string or array of ${rules.of}`;
  return (value) => {
    if (typeof value === "string") return undefined;
    return Array.isArray(value) ? items(value) : wrongType(expected, value);
  };
}

/** `expected`: the name of the two forms in a refusal. */
export function textOrObject(textForm: Check, objectForm: Check, expected: string): Check {
  return (value) => {
    if (typeof value === "string") return textForm(value);
    return isObject(value) ? objectForm(value) : wrongType(expected, value);
  };
}

export function emptyArray(): Violation {
  return new Violation(
    "empty_array",
    (path) =>
      `Invalid '${path}': empty array. Expected an array with minimum length 1, ` +
      "but got an empty array instead.",
  );
}

export function arrayTooLong(maximum: number, length: number): Violation {
  return new Violation(
    "array_above_max_length",
    (path) =>
      `Invalid '${path}': array too long. Expected an array with maximum length ${maximum}, ` +
      `but got an array with length ${length} instead.`,
  );
}

function outsideSet(value: unknown, supported: readonly string[]): Violation {
  if (typeof value !== "string") {
    const values = listValues(supported, "or");
    return wrongType(supported.length > 1 ? `one of ${values}` : values, value);
  }
  const values = listValues(supported, "and");
  return new Violation(
    "invalid_value",
    (_path, quote) => `Invalid value: '${quote(value)}'. Supported values are: ${values}.`,
  );
}

function countCharacters(value: string): number {
  let count = 0;
  for (let index = 0; index < value.length; index += 1) {
    const code = value.charCodeAt(index);
    const isSecondHalf = code >= 0xdc00 && code <= 0xdfff;
    if (!isSecondHalf) count += 1;
  }
  return count;
}

interface MapRules {
  readonly value: Check;
  readonly key?: (key: string) => Violation | undefined;
  readonly maximumEntries?: number;
}

/** An object with free keys. A violation of a key is reported for the whole map. */
export function map(rules: MapRules): Check {
  const { value: checkValue, key: checkKey, maximumEntries = Infinity } = rules;
  return (value) => {
    if (!isObject(value)) return wrongType("an object", value);
    const keys = Object.keys(value);
    if (keys.length > maximumEntries) {
      return new Violation(
        "object_above_max_properties",
        (path) =>
          `Invalid '${path}': too many properties. Expected an object with at most ` +
          `${maximumEntries} properties, but got an object with ${keys.length} properties instead.`,
      );
    }
    for (const key of keys) {
      const keyViolation = checkKey?.(key);
      if (keyViolation !== undefined) return keyViolation;
      const violation = checkValue(value[key]);
      if (violation !== undefined) return violation.insideField(clip(key), "");
    }
    return undefined;
  };
}

export function keyAtMost(maximumLength: number): (key: string) => Violation | undefined {
  return (key) =>
    key.length <= maximumLength
      ? undefined
      : new Violation(
          "string_above_max_length",
          (path, quote) =>
            `Invalid property name in '${path}': ` +
            `'${quote(`${key.slice(0, 3)}...${key.slice(-3)}`)}' is too long. Expected a string with maximum length ${maximumLength}, ` +
            `but got a string with length ${key.length} instead.`,
        );
}

const tokenIdPattern = /^\d+$/;

export function tokenIdKey(key: string): Violation | undefined {
  return tokenIdPattern.test(key)
    ? undefined
    : new Violation(
        "invalid_value",
        (path, quote) =>
          `Invalid key in '${path}': '${quote(key)}'. Expected a token id, a non-negative integer.`,
      );
}

/** `quote` writes a text of the caller. */
type MessageOf = (path: string, quote: (text: string) => string) => string;

/** The first fault found. Containers prepend their names, so a valid body never builds a path. */
export class Violation {
  readonly #row: GatewayErrorName;
  readonly #message: MessageOf;
  readonly #param: (path: string) => string;
  #path = "";
  /** The path without names that are the caller's own. */
  #keptPath = "";

  /** Message and `param` of the error, given the path of the field, such as `messages[1].content`. */
  constructor(
    row: GatewayErrorName,
    message: MessageOf,
    param: (path: string) => string = (path) => path,
  ) {
    this.#row = row;
    this.#message = message;
    this.#param = param;
  }

  insideField(name: string, keptName = name): this {
    this.#path = inside(name, this.#path);
    this.#keptPath = keptName === "" ? "" : inside(keptName, this.#keptPath);
    return this;
  }

  insideItem(index: number): this {
    return this.insideField(`[${index}]`);
  }

  toError(): GatewayError {
    const message = this.#message(this.#path, clip);
    const keptMessage = this.#message(this.#keptPath, () => "...");
    return new GatewayError(this.#row, { message, keptMessage, param: this.#param(this.#path) });
  }
}

function inside(name: string, path: string): string {
  if (path === "") return name;
  return path.startsWith("[") ? name + path : `${name}.${path}`;
}

/** "'a', 'b', and 'c'", as OpenAI writes sets. */
function listValues(values: readonly string[], word: "and" | "or"): string {
  const quoted = values.map((value) => `'${value}'`);
  if (quoted.length < 3) return quoted.join(` ${word} `);
  return `${quoted.slice(0, -1).join(", ")}, ${word} ${quoted.at(-1) ?? ""}`;
}

const longestEcho = 64;

/** Shortens a caller's text that a message repeats. */
export function clip(text: string): string {
  return text.length > longestEcho ? `${text.slice(0, longestEcho)}...` : text;
}

function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  if (typeof value === "string") return "a string";
  if (typeof value === "boolean") return "a boolean";
  if (typeof value !== "number") return "an object";
  return Number.isInteger(value) ? "an integer" : "a decimal number";
}
