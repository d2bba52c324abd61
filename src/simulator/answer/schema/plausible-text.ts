import { textForPattern } from "./pattern-text.ts";
import type { Random } from "../random.ts";
import { numberOf, stringOf, type JsonRecord } from "../../read-json.ts";

/** What the conversation offers to fill text fields with. */
export interface TextHints {
  readonly userText: string;
  readonly names: readonly string[];
  readonly words: readonly string[];
}

/** A text for a string schema: pattern and format first, then whatever fits the field's name. */
export function plausibleText(
  schema: JsonRecord,
  fieldName: string,
  source: { readonly random: Random; readonly hints: TextHints },
): string {
  const pattern = stringOf(schema["pattern"]);
  const lowest = numberOf(schema["minLength"]) ?? 0;
  const highest = numberOf(schema["maxLength"]) ?? Number.POSITIVE_INFINITY;
  if (pattern !== "") return matchingText(pattern, { lowest, highest }, source.random);
  const formatted = formattedText(stringOf(schema["format"]), source.random);
  return withLength(formatted ?? textForField(fieldName, source), lowest, highest);
}

function matchingText(
  pattern: string,
  length: { readonly lowest: number; readonly highest: number },
  random: Random,
): string {
  let text = "";
  for (let attempt = 0; attempt < 40; attempt++) {
    text = textForPattern(pattern, random) ?? "";
    const size = Array.from(text).length;
    if (size >= length.lowest && size <= length.highest) break;
  }
  return text;
}

function formattedText(format: string, random: Random): string | undefined {
  const day = String(random.integer(10, 28));
  const number = random.integer(1, 250);
  switch (format) {
    case "date-time":
      return `2026-03-${day}T09:30:00Z`;
    case "date":
      return `2026-03-${day}`;
    case "time":
      return "09:30:00Z";
    case "duration":
      return `PT${number}M`;
    case "email":
    case "idn-email":
      return `person${number}@example.com`;
    case "hostname":
    case "idn-hostname":
      return `host${number}.example.com`;
    case "ipv4":
      return `192.0.2.${number}`;
    case "ipv6":
      return `2001:db8::${number.toString(16)}`;
    case "uri":
    case "iri":
    case "url":
      return `https://example.com/items/${number}`;
    case "uri-reference":
      return `/items/${number}`;
    case "uuid":
      return uuid(random);
    case "byte":
      return Buffer.from(`item ${number}`).toString("base64");
    default:
      return undefined;
  }
}

function uuid(random: Random): string {
  const digits = (count: number): string =>
    Array.from({ length: count }, () => random.integer(0, 15).toString(16)).join("");
  return `${digits(8)}-${digits(4)}-4${digits(3)}-a${digits(3)}-${digits(12)}`;
}

function textForField(
  fieldName: string,
  source: { readonly random: Random; readonly hints: TextHints },
): string {
  const { random, hints } = source;
  const name = fieldName.toLowerCase();
  const byName = [...hints.names];
  if (/query|question|prompt|text|message|content|body|input|command/.test(name)) {
    return hints.userText.trim().replace(/\s+/g, " ").slice(0, 120) || "anything new";
  }
  if (/date|day/.test(name)) return `2026-03-${random.integer(10, 28)}`;
  if (/e-?mail/.test(name)) return `person${random.integer(1, 99)}@example.com`;
  if (/url|link|uri/.test(name)) return `https://example.com/${hints.words[0] ?? "page"}`;
  if (/(^|_)id$/.test(name)) return `id-${random.integer(1000, 9999)}`;
  if (/city|location|place|country|name|person|who|where|to|from/.test(name)) {
    return random.pickAny(byName) ?? titleCase(random.pickAny(hints.words) ?? "somewhere");
  }
  const found = random.pickAny([...hints.names, ...hints.words]);
  return found ?? random.pick(["alpha", "harbour", "river", "lantern", "meadow", "signal"]);
}

function titleCase(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}

/** JSON Schema counts characters, not UTF-16 units. */
function withLength(text: string, lowest: number, highest: number): string {
  const characters = Array.from(text);
  if (characters.length > highest) return characters.slice(0, highest).join("");
  return characters.length < lowest ? text + "x".repeat(lowest - characters.length) : text;
}
