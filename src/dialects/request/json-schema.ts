/**
 * The JSON schemas of a request. Nulls in them are removed where null is no value: serializers write
 * keywords that were not set as null, and strict servers refuse them.
 */
import { isObject, type JsonObject } from "../../domain/json-object.ts";
import { anyObject, both, type Check, Violation } from "./checks.ts";

/** The schema of an answer; a server may take one that describes no object. */
export function answerSchema(value: unknown): Violation | undefined {
  if (!isObject(value)) return anyObject(value);
  dropNulls(value);
  if (isListWithObject(value["type"])) set(value, "type", "object");
  return undefined;
}

/** A tool with a name, and with the schema of its parameters in a field. */
export function toolWith(field: string, fields: Check): Check {
  return both(fields, ({ [field]: schema, name }) =>
    checkParameters(schema, String(name))?.insideField(field),
  );
}

/**
 * Arguments are always an object, so a schema that leaves its type open becomes one of an object.
 * `name` is the tool's.
 */
function checkParameters(schema: unknown, name: string): Violation | undefined {
  if (!isObject(schema)) return undefined;
  dropNulls(schema);
  const type = schema["type"] ?? "object";
  if (type !== "object" && !isListWithObject(type)) {
    return new Violation(
      "invalid_function_parameters",
      (_path, quote) =>
        `Invalid schema for function '${quote(name)}': schema must be a JSON Schema of ` +
        `'type: "object"', got 'type: ${quote(JSON.stringify(type))}'.`,
    );
  }
  set(schema, "type", "object");
  // Without arguments too, some servers require the list of them.
  if (!describing.some((keyword) => keyword in schema)) set(schema, "properties", {});
  return undefined;
}

const describing = ["properties", "$ref", "anyOf", "oneOf", "allOf"];

function isListWithObject(type: unknown): boolean {
  return Array.isArray(type) && type.includes("object");
}

/** The depth of a body is bounded. */
function dropNulls(schema: JsonObject): void {
  for (const keyword of Object.keys(schema)) {
    const value = schema[keyword];
    if (typeof value !== "object") continue;
    if (value === null) {
      if (!valueKeywords.has(keyword)) Reflect.deleteProperty(schema, keyword);
    } else if (mapKeywords.has(keyword)) cleanMap(value);
    else if (keyword === "enum") dropImpossibleNull(schema, value);
    else if (Array.isArray(value)) {
      if (listKeywords.has(keyword)) set(schema, keyword, withoutNulls(value));
    } else if (schemaKeywords.has(keyword) && isObject(value)) dropNulls(value);
  }
}

function withoutNulls(list: readonly unknown[]): readonly unknown[] {
  for (const item of list) if (isObject(item)) dropNulls(item);
  return list.includes(null) ? list.filter((item) => item !== null) : list;
}

/** A name keeps its place: what may be anything has the schema `{}`. */
function cleanMap(map: unknown): void {
  if (!isObject(map)) return;
  for (const name of Object.keys(map)) {
    const schema = map[name];
    if (schema === null) set(map, name, {});
    else if (isObject(schema)) dropNulls(schema);
  }
}

/** Null in a choice is a value, unless the type rules it out. */
function dropImpossibleNull(schema: JsonObject, choice: unknown): void {
  const types = [schema["type"] ?? "null"].flat();
  if (!Array.isArray(choice) || types.includes("null") || schema["nullable"] === true) return;
  const possible = choice.filter((value) => value !== null);
  if (possible.length > 0) set(schema, "enum", possible);
}

/** An own field, also if it is named `__proto__`. */
function set(object: JsonObject, name: string, value: unknown): void {
  if (object[name] !== value) Reflect.set(object, name, value);
}

/** Their values may be null. */
const valueKeywords: ReadonlySet<string> = new Set(["default", "const", "example"]);
const mapKeywords: ReadonlySet<string> = new Set(
  "properties patternProperties $defs definitions dependentSchemas".split(" "),
);
const listKeywords: ReadonlySet<string> = new Set(
  "type required anyOf oneOf allOf prefixItems items".split(" "),
);
const schemaKeywords: ReadonlySet<string> = new Set(
  (
    "items additionalProperties additionalItems unevaluatedItems unevaluatedProperties contains " +
    "propertyNames contentSchema not if then else"
  ).split(" "),
);
