import { isList, isRecord } from "../../read-json.ts";
import { BedrockError, invalid } from "../bedrock-error.ts";

/** What a member of a request may be: a small reading of the provider's service model. */
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

/** Lowest and highest, both allowed. */
export type Bounds = readonly [number | undefined, number | undefined];

/**
 * Throws `BedrockError` for a value that is not of the shape: a wrong type at once, and all breaches
 * of constraints together. Members that the service model does not know are refused too, which the
 * provider does for unions alone: a misspelt field would else go unseen.
 */
export function checkShape(value: unknown, shape: Shape, at = ""): void {
  const breaches: string[] = [];
  visit({ value, at }, shape, breaches);
  if (breaches.length === 0) return;
  const count = `${breaches.length} validation error${breaches.length === 1 ? "" : "s"}`;
  throw invalid(`${count} detected: ${breaches.join("; ")}`);
}

interface Place {
  readonly value: unknown;
  readonly at: string;
}

function visit({ value, at }: Place, shape: Shape, breaches: string[]): void {
  const breach = (constraint: string): void => {
    const shown = `${value === null ? "null" : `'${shownValue(value)}'`} at '${at}'`;
    breaches.push(`Value ${shown} failed to satisfy constraint: ${constraint}`);
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
      checkBounds(value, shape.range, (limit) => breach(`Member must have value ${limit}`));
      return;
    case "string":
      if (typeof value !== "string") throw wrongType(value, "a String");
      checkText(value, shape, breach);
      return;
    case "list":
      if (!isList(value)) throw wrongType(value, "a List");
      checkBounds(value.length, shape.length, (limit) =>
        breach(`Member must have length ${limit}`),
      );
      for (const [index, item] of value.entries()) {
        visit({ value: item, at: `${at}.${index + 1}.member` }, shape.of, breaches);
      }
      return;
    case "map":
      visitMap({ value, at }, shape, { breach, breaches });
      return;
    case "structure":
    case "union":
      visitMembers({ value, at }, shape, breaches);
      return;
  }
}

function checkText(
  value: string,
  shape: Extract<Shape, { kind: "string" }>,
  breach: (constraint: string) => void,
): void {
  checkBounds(value.length, shape.length, (limit) => breach(`Member must have length ${limit}`));
  if (shape.values !== undefined && !shape.values.includes(value)) {
    breach(`Member must satisfy enum value set: [${shape.values.join(", ")}]`);
  }
  if (shape.pattern !== undefined && !shape.pattern.test(value)) {
    const pattern = shape.pattern.source.replace(/^\^(.*)\$$/, "$1");
    breach(`Member must satisfy regular expression pattern: ${pattern}`);
  }
}

function visitMap(
  { value, at }: Place,
  shape: Extract<Shape, { kind: "map" }>,
  found: { readonly breach: (constraint: string) => void; readonly breaches: string[] },
): void {
  if (!isRecord(value)) throw wrongType(value, "a Map");
  const entries = Object.entries(value);
  checkBounds(entries.length, shape.length, (limit) =>
    found.breach(`Member must have length ${limit}`),
  );
  for (const [key, item] of entries) {
    visit({ value: key, at: `${at}.key` }, shape.key, found.breaches);
    visit({ value: item, at: `${at}.${key}.member` }, shape.value, found.breaches);
  }
}

function visitMembers(
  { value, at }: Place,
  shape: Extract<Shape, { kind: "structure" | "union" }>,
  breaches: string[],
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
    breaches.push(`Value at '${at}' failed to satisfy constraint: ${constraint}`);
    return;
  }
  const required = shape.kind === "union" ? [] : shape.required;
  for (const name of required) {
    if (given.some(([present]) => present === name)) continue;
    breaches.push(
      `Value null at '${inside(name)}' failed to satisfy constraint: Member must not be null`,
    );
  }
  for (const [name, member] of given) {
    const memberShape = shape.members[name];
    if (memberShape !== undefined) {
      visit({ value: member, at: inside(name) }, memberShape, breaches);
    }
  }
}

function checkBounds(
  size: number,
  bounds: Bounds | undefined,
  breach: (limit: string) => void,
): void {
  const [lowest = Number.NEGATIVE_INFINITY, highest = Number.POSITIVE_INFINITY] = bounds ?? [];
  if (size < lowest) breach(`greater than or equal to ${lowest}`);
  if (size > highest) breach(`less than or equal to ${highest}`);
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
