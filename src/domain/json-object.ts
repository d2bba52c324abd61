import { Secret } from "./keys/secret.ts";

export type JsonObject = Readonly<Record<string, unknown>>;

/** Whether a value is an object with fields: no list, and not null. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Whether two values of plain data are equal, including secrets, which are not printed. */
export function isSameValue(one: unknown, other: unknown): boolean {
  if (Object.is(one, other)) return true;
  if (!isNested(one) || !isNested(other)) return false;
  if (Object.getPrototypeOf(one) !== Object.getPrototypeOf(other)) return false;
  if (one instanceof Secret) return other instanceof Secret && one.reveal() === other.reveal();
  const ownEntries = entriesOf(one);
  const otherEntries = entriesOf(other);
  if (ownEntries.size !== otherEntries.size) return false;
  for (const [key, value] of ownEntries) {
    if (!otherEntries.has(key) || !isSameValue(value, otherEntries.get(key))) return false;
  }
  return true;
}

function isNested(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

function entriesOf(value: object): ReadonlyMap<unknown, unknown> {
  return value instanceof Map ? value : new Map(Object.entries(value));
}

/** Longer texts are left to the runtime, which is faster with them. */
const mostScanned = 64;

/** A text as a JSON string. Most of a stream's texts are a word, which is the same in JSON. */
export function writeJsonText(text: string): string {
  return isPlain(text) ? `"${text}"` : JSON.stringify(text);
}

/** Undefined for JSON that is not one string. */
export function readJsonText(json: string): string | undefined {
  const end = json.length - 1;
  if (end > 0 && json.charCodeAt(0) === quote && json.charCodeAt(end) === quote) {
    const text = json.slice(1, end);
    if (isPlain(text)) return text;
  }
  try {
    const value: unknown = JSON.parse(json);
    return typeof value === "string" ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Whether nothing in the text has to be escaped. */
function isPlain(text: string): boolean {
  if (text.length > mostScanned) return false;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code < space || code === quote || code === backslash) return false;
    // A half of a pair alone is escaped.
    if (code >= firstSurrogate && code <= lastSurrogate) return false;
  }
  return true;
}

const space = 0x20;
const quote = 0x22;
const backslash = 0x5c;
const firstSurrogate = 0xd800;
const lastSurrogate = 0xdfff;

/** The names of files and of the admin API as code writes them: `maxTokens` for `max_tokens`. */
export type CamelCase<Text extends string> = Text extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<CamelCase<Tail>>}`
  : Text;

export function camelCase(name: string): string {
  return name.replaceAll(/_(\w)/g, (_match, letter: string) => letter.toUpperCase());
}
