import { textForPattern } from "./pattern-text.ts";
import type { Random } from "../random.ts";
import { numberOf, stringOf, type JsonRecord } from "../../read-json.ts";

/** Texts of the conversation that may fill text fields. */
export interface TextHints {
  readonly userText: string;
  readonly names: readonly string[];
  readonly words: readonly string[];
}

interface Source {
  readonly random: Random;
  readonly hints: TextHints;
}

/** A text for a string schema: by its pattern, else its format, else the field's name. */
export function plausibleText(schema: JsonRecord, fieldName: string, source: Source): string {
  const lowest = numberOf(schema["minLength"]) ?? 0;
  const highest = numberOf(schema["maxLength"]) ?? Number.POSITIVE_INFINITY;
  const pattern = stringOf(schema["pattern"]);
  // JSON Schema counts characters, not UTF-16 units.
  for (let attempt = 0; pattern !== "" && attempt < 40; attempt++) {
    const text = textForPattern(pattern, source.random) ?? "";
    const size = Array.from(text).length;
    if ((size >= lowest && size <= highest) || attempt === 39) return text;
  }
  const format = formats[stringOf(schema["format"])]?.(source.random.integer(10, 28));
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

function textForField(fieldName: string, { random, hints }: Source): string {
  if (/query|question|prompt|text|message|content|body|input|command/i.test(fieldName)) {
    return hints.userText.trim().replace(/\s+/g, " ").slice(0, 120) || "anything new";
  }
  const known = hints.names.length > 0 ? hints.names : hints.words;
  return random.pickAny(known) ?? random.pick(["alpha", "harbour", "river", "lantern", "meadow"]);
}
