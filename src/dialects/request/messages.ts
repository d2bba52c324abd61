/**
 * The texts of all refusals of bodies, worded as OpenAI's, because clients match on parts of them.
 * `path` is the field at fault, such as `messages[1].content`.
 */

const longestEcho = 64;

export function notJson(): string {
  return (
    "We could not parse the JSON body of your request. Send one JSON object in UTF-8, with the " +
    "header Content-Type: application/json."
  );
}

export function missingModel(): string {
  return "you must provide a model parameter";
}

export function missingParameter(path: string): string {
  return `Missing required parameter: '${path}'.`;
}

export function responsesBody(path: string): string {
  return (
    `${missingParameter(path)} The body has 'input' and looks like a request of the Responses ` +
    "API; this endpoint takes the conversation as 'messages'."
  );
}

/** `expected` includes its article: "a string", "one of a string or array of objects". */
export function wrongType(path: string, expected: string, value: unknown): string {
  return `Invalid type for '${path}': expected ${expected}, but got ${kindOf(value)} instead.`;
}

export function nullContent(): string {
  return "Invalid value for 'content': expected a string, got null.";
}

export function unsupportedValue(value: string, supported: readonly string[]): string {
  return `Invalid value: '${clip(value)}'. Supported values are: ${listValues(supported, "and")}.`;
}

export function emptyArray(path: string): string {
  return (
    `Invalid '${path}': empty array. Expected an array with minimum length 1, ` +
    "but got an empty array instead."
  );
}

export function arrayTooLong(path: string, maximum: number, length: number): string {
  return (
    `Invalid '${path}': array too long. Expected an array with maximum length ${maximum}, ` +
    `but got an array with length ${length} instead.`
  );
}

export function emptyString(path: string): string {
  return (
    `Invalid '${path}': empty string. Expected a string with minimum length 1, ` +
    "but got an empty string instead."
  );
}

export function stringTooLong(path: string, maximum: number, length: number): string {
  return (
    `Invalid '${path}': string too long. Expected a string with maximum length ${maximum}, ` +
    `but got a string with length ${length} instead.`
  );
}

export function patternMismatch(path: string, pattern: string): string {
  return (
    `Invalid '${path}': string does not match pattern. ` +
    `Expected a string that matches the pattern '${pattern}'.`
  );
}

export function invalidUrl(path: string): string {
  return `Invalid '${path}'. Expected a valid URL, but got a value with an invalid format.`;
}

export type NumberKind = "integer" | "decimal";

export interface Bound {
  readonly kind: NumberKind;
  readonly limit: number;
}

export function belowMinimum(path: string, { kind, limit }: Bound, value: number): string {
  return (
    `Invalid '${path}': ${kind} below minimum value. ` +
    `Expected a value >= ${limit}, but got ${value} instead.`
  );
}

export function aboveMaximum(path: string, { kind, limit }: Bound, value: number): string {
  return (
    `Invalid '${path}': ${kind} above maximum value. ` +
    `Expected a value <= ${limit}, but got ${value} instead.`
  );
}

export function tooManyProperties(path: string, maximum: number, count: number): string {
  return (
    `Invalid '${path}': too many properties. Expected an object with at most ${maximum} ` +
    `properties, but got an object with ${count} properties instead.`
  );
}

export interface LongKey {
  readonly key: string;
  readonly maximum: number;
}

export function keyTooLong(path: string, { key, maximum }: LongKey): string {
  return (
    `Invalid property name in '${path}': '${key.slice(0, 3)}...${key.slice(-3)}' is too long. ` +
    `Expected a string with maximum length ${maximum}, ` +
    `but got a string with length ${key.length} instead.`
  );
}

export function keyNotTokenId(path: string, key: string): string {
  return `Invalid key in '${path}': '${clip(key)}'. Expected a token id, a non-negative integer.`;
}

export function onlyAllowedWith(path: string, other: string): string {
  return `The '${path}' parameter is only allowed when '${other}' is enabled.`;
}

/** `name` is the tool's. */
export function schemaOfNoObject(name: string, type: unknown): string {
  return (
    `Invalid schema for function '${clip(name)}': schema must be a JSON Schema of ` +
    `'type: "object"', got 'type: ${clip(JSON.stringify(type))}'.`
  );
}

export function jsonNotAsked(): string {
  return (
    "'messages' must contain the word 'json' in some form, " +
    "to use 'response_format' of type 'json_object'."
  );
}

/** `list` is the field that should contain the name. */
export function choiceNotOffered(name: string, choice: "Tool" | "Function", list: string): string {
  return `${choice} choice '${clip(name)}' not found in '${list}' parameter.`;
}

export function invalidInput(): string {
  return "'$.input' is invalid. Please check the API reference.";
}

/** "'a', 'b', and 'c'", as OpenAI writes sets. */
export function listValues(values: readonly string[], word: "and" | "or"): string {
  const quoted = values.map((value) => `'${value}'`);
  if (quoted.length < 3) return quoted.join(` ${word} `);
  return `${quoted.slice(0, -1).join(", ")}, ${word} ${quoted.at(-1) ?? ""}`;
}

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
