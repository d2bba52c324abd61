import { isList, isRecord } from "../../read-json.ts";
import { BedrockError, invalid } from "../bedrock-error.ts";

/** The type of a request's member: a subset of the provider's service model. */
export type Shape =
  | {
      readonly kind: "string";
      readonly length?: Bounds;
      readonly pattern?: RegExp;
      readonly values?: readonly string[];
    }
  | { readonly kind: "integer" | "float"; readonly range?: Bounds }
  | { readonly kind: "boolean" | "document" | "blob" }
  | { readonly kind: "list"; readonly of: Shape; readonly length?: Bounds }
  | { readonly kind: "map"; readonly key: Shape; readonly value: Shape; readonly length?: Bounds }
  | { readonly kind: "structure"; readonly members: Members; readonly required: readonly string[] }
  /** Exactly one of the members. */
  | { readonly kind: "union"; readonly members: Members };

export type Members = Readonly<Record<string, Shape>>;

/** Lowest and highest, inclusive. */
export type Bounds = readonly [number | undefined, number | undefined];

/**
 * Throws `BedrockError` if a value does not match the shape: at once for a wrong type, else with
 * all violated constraints. Unknown members are refused too, to show misspelt fields; the provider
 * refuses them in unions only.
 */
export function checkShape(value: unknown, shape: Shape, at = ""): void {
  const violations: string[] = [];
  visit({ value, at }, shape, violations);
  if (violations.length === 0) return;
  const count = `${violations.length} validation error${violations.length === 1 ? "" : "s"}`;
  throw invalid(`${count} detected: ${violations.join("; ")}`);
}

interface Place {
  readonly value: unknown;
  readonly at: string;
}

function visit({ value, at }: Place, shape: Shape, violations: string[]): void {
  const violate = (constraint: string): void => {
    const shown = `${value === null ? "null" : `'${shownValue(value)}'`} at '${at}'`;
    violations.push(`Value ${shown} failed to satisfy constraint: ${constraint}`);
  };
  switch (shape.kind) {
    case "document":
      return;
    case "boolean":
      if (typeof value !== "boolean") throw wrongType(value, "a Boolean");
      return;
    case "blob":
      if (typeof value !== "string") throw wrongType(value, "a Blob");
      if (!/^[A-Za-z0-9+/]*={0,2}$/.test(value)) throw notBase64();
      return;
    case "integer":
    case "float":
      if (typeof value !== "number") throw wrongType(value, `a ${capital(shape.kind)}`);
      if (shape.kind === "integer" && !Number.isInteger(value)) {
        throw new BedrockError("SerializationException", `${value} is not an integer`);
      }
      checkBounds(value, shape.range, (limit) => violate(`Member must have value ${limit}`));
      return;
    case "string":
      if (typeof value !== "string") throw wrongType(value, "a String");
      checkText(value, shape, violate);
      return;
    case "list":
      if (!isList(value)) throw wrongType(value, "a List");
      checkBounds(value.length, shape.length, (limit) =>
        violate(`Member must have length ${limit}`),
      );
      for (const [index, item] of value.entries()) {
        visit({ value: item, at: `${at}.${index + 1}.member` }, shape.of, violations);
      }
      return;
    case "map":
      visitMap({ value, at }, shape, { violate, violations });
      return;
    case "structure":
    case "union":
      visitMembers({ value, at }, shape, violations);
      return;
  }
}

function checkText(
  value: string,
  shape: Extract<Shape, { kind: "string" }>,
  violate: (constraint: string) => void,
): void {
  checkBounds(value.length, shape.length, (limit) => violate(`Member must have length ${limit}`));
  if (shape.values !== undefined && !shape.values.includes(value)) {
    violate(`Member must satisfy enum value set: [${shape.values.join(", ")}]`);
  }
  if (shape.pattern !== undefined && !shape.pattern.test(value)) {
    const pattern = shape.pattern.source.replace(/^\^(.*)\$$/, "$1");
    violate(`Member must satisfy regular expression pattern: ${pattern}`);
  }
}

function visitMap(
  { value, at }: Place,
  shape: Extract<Shape, { kind: "map" }>,
  found: { readonly violate: (constraint: string) => void; readonly violations: string[] },
): void {
  if (!isRecord(value)) throw wrongType(value, "a Map");
  const entries = Object.entries(value);
  checkBounds(entries.length, shape.length, (limit) =>
    found.violate(`Member must have length ${limit}`),
  );
  for (const [key, item] of entries) {
    visit({ value: key, at: `${at}.key` }, shape.key, found.violations);
    visit({ value: item, at: `${at}.${key}.member` }, shape.value, found.violations);
  }
}

function visitMembers(
  { value, at }: Place,
  shape: Extract<Shape, { kind: "structure" | "union" }>,
  violations: string[],
): void {
  if (!isRecord(value)) throw wrongType(value, "a Structure");
  const inside = (name: string): string => (at === "" ? name : `${at}.${name}`);
  // Members that are null count as absent.
  const given = Object.entries(value).filter(([, member]) => member !== null);
  const unknown = given.find(([name]) => !Object.hasOwn(shape.members, name));
  if (unknown !== undefined) {
    const key = `#/${at.replaceAll(".", "/")}: extraneous key [${unknown[0]}] is not permitted`;
    throw invalid(`Malformed input request: ${key}, please reformat your input and try again.`);
  }
  if (shape.kind === "union" && given.length !== 1) {
    const constraint = "Member must have exactly one of its members set";
    violations.push(`Value at '${at}' failed to satisfy constraint: ${constraint}`);
    return;
  }
  const required = shape.kind === "union" ? [] : shape.required;
  for (const name of required) {
    if (given.some(([present]) => present === name)) continue;
    violations.push(
      `Value null at '${inside(name)}' failed to satisfy constraint: Member must not be null`,
    );
  }
  for (const [name, member] of given) {
    const memberShape = shape.members[name];
    if (memberShape !== undefined) {
      visit({ value: member, at: inside(name) }, memberShape, violations);
    }
  }
}

function checkBounds(
  size: number,
  bounds: Bounds | undefined,
  violate: (limit: string) => void,
): void {
  const [lowest = Number.NEGATIVE_INFINITY, highest = Number.POSITIVE_INFINITY] = bounds ?? [];
  if (size < lowest) violate(`greater than or equal to ${lowest}`);
  if (size > highest) violate(`less than or equal to ${highest}`);
}

function shownValue(value: unknown): string {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.length > 200 ? `${text.slice(0, 200)}...` : text;
}

function wrongType(value: unknown, wanted: string): BedrockError {
  const message = `${nameOfType(value)} cannot be converted to ${wanted}`;
  return new BedrockError("SerializationException", message);
}

function nameOfType(value: unknown): string {
  if (value === null || value === undefined) return "NULL_VALUE";
  if (isList(value)) return "LIST_VALUE";
  if (typeof value === "boolean") return value ? "TRUE_VALUE" : "FALSE_VALUE";
  return isRecord(value) ? "STRUCTURE_VALUE" : `${(typeof value).toUpperCase()}_VALUE`;
}

function notBase64(): BedrockError {
  return new BedrockError("SerializationException", "A Blob must be base64");
}

function capital(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}
