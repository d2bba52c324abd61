import type { Random } from "./random.ts";
import { type JsonRecord, numberOf, stringOf } from "../json.ts";

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

/**
 * A text that matches a regular expression of literals, classes, groups, alternatives, quantifiers
 * and anchors. Undefined if no matching text was found.
 */
export function textForPattern(pattern: string, random: Random): string | undefined {
  // Patterns of other dialects often compile only without the `u` flag.
  const expression = compile(pattern, "u") ?? compile(pattern, "");
  for (let attempt = 0; expression !== undefined && attempt < 8; attempt++) {
    const text = new PatternWriter(expression, random).write();
    if (expression.test(text)) return text;
  }
  return undefined;
}

function compile(pattern: string, flags: string): RegExp | undefined {
  try {
    return new RegExp(pattern, flags);
  } catch {
    return undefined;
  }
}

const printable = Array.from({ length: 95 }, (_, index) => String.fromCharCode(32 + index));
const atomPattern =
  /^(?:\\[pP]\{[^}]*\}|\\u[\da-f]{4}|\\x[\da-f]{2}|\\.|\[(?:\\.|[^\]\\])*\]|.)/isu;
const longestText = 4096;

/** Reads the expression once and writes a matching text. */
class PatternWriter {
  readonly #pattern: string;
  readonly #flags: string;
  readonly #random: Random;
  #place = 0;

  constructor({ source, flags }: RegExp, random: Random) {
    this.#pattern = source;
    this.#flags = flags;
    this.#random = random;
  }

  /** Reads to the end of the current group and writes one of its alternatives. */
  write(): string {
    const options: string[] = [];
    for (let text = ""; ;) {
      const sign = this.#pattern[this.#place];
      if (sign === undefined || sign === "|" || sign === ")") {
        options.push(text);
        text = "";
        if (sign !== "|") return this.#random.pickAny(options)?.slice(0, longestText) ?? "";
        this.#place += 1;
      } else text += this.#repeated();
    }
  }

  /** One atom with its quantifier; every repetition is written anew. */
  #repeated(): string {
    const start = this.#place;
    const texts = [this.#atom()];
    const quantifier = this.#take(/^(?:[*+?]|\{(\d+)(,?)(\d*)\})\??/);
    const after = this.#place;
    const count = quantifier === undefined ? 1 : this.#count(quantifier);
    while (texts.length < Math.min(count, longestText)) {
      this.#place = start;
      texts.push(this.#atom());
    }
    this.#place = after;
    return texts.slice(0, count).join("");
  }

  #count([sign = "", least = "0", comma, most]: RegExpExecArray): number {
    if (sign.startsWith("?")) return this.#random.integer(0, 1);
    if (!sign.startsWith("{")) return this.#random.integer(sign.startsWith("+") ? 1 : 0, 5);
    const lowest = Number(least);
    if (comma === "") return lowest;
    return this.#random.integer(lowest, Math.min(Number(most) || Infinity, lowest + 8));
  }

  #atom(): string {
    const group = this.#take(/^\((?:\?(?::|<\w+>|<?[=!]))?/)?.[0];
    if (group !== undefined) {
      const text = this.write();
      this.#place += 1;
      // Lookarounds match no characters.
      return /[=!]$/.test(group) ? "" : text;
    }
    const [atom = ""] = this.#take(atomPattern) ?? [];
    if (/^(?:[\^$]|\\[bB])$/.test(atom)) return "";
    if (!/^[\\[.]/.test(atom)) return atom;
    const expression = compile(`^(?:${atom})$`, this.#flags);
    return this.#random.pickAny(printable.filter((sign) => expression?.test(sign))) ?? "";
  }

  #take(expression: RegExp): RegExpExecArray | undefined {
    const found = expression.exec(this.#pattern.slice(this.#place)) ?? undefined;
    this.#place += found?.[0].length ?? 0;
    return found;
  }
}
