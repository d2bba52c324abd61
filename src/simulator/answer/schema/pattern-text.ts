import type { Random } from "../random.ts";

/**
 * A text that matches a regular expression, as far as the expression stays with literals, classes,
 * groups, alternatives, quantifiers and anchors. Undefined when no text was found that matches.
 */
export function textForPattern(pattern: string, random: Random): string | undefined {
  const expression = compile(pattern);
  if (expression === undefined) return undefined;
  for (let attempt = 0; attempt < 8; attempt++) {
    const text = new PatternWriter(pattern, random).write();
    if (expression.test(text)) return text;
  }
  return undefined;
}

function compile(pattern: string): RegExp | undefined {
  for (const flags of ["u", ""]) {
    try {
      return new RegExp(pattern, flags);
    } catch {
      // Patterns written for other dialects often compile without the `u` flag only.
    }
  }
  return undefined;
}

const letters = "abcdefghijklmnopqrstuvwxyz";
const digits = "0123456789";
const printable = `${letters}${letters.toUpperCase()}${digits} _-.,:;!?/+*=()`;
const classCharacters: Readonly<Record<string, string>> = {
  d: digits,
  w: `${letters}${digits}_`,
  s: " ",
  D: letters,
  W: "-",
  S: letters,
};
const escapedCharacters: Readonly<Record<string, string>> = { n: "\n", t: "\t", r: "\r" };
const longestText = 4096;

/** Walks the expression once and writes one text that it accepts. */
class PatternWriter {
  readonly #pattern: string;
  readonly #random: Random;
  #position = 0;

  constructor(pattern: string, random: Random) {
    this.#pattern = pattern;
    this.#random = random;
  }

  write(): string {
    return this.#alternatives().slice(0, longestText);
  }

  #alternatives(): string {
    const options = [this.#sequence()];
    while (this.#take("|")) options.push(this.#sequence());
    return this.#random.pickAny(options) ?? "";
  }

  #sequence(): string {
    let text = "";
    while (this.#position < this.#pattern.length && !"|)".includes(this.#peek())) {
      text += this.#repeated();
    }
    return text;
  }

  /** One atom and its quantifier: the atom is written anew for every repetition. */
  #repeated(): string {
    const start = this.#position;
    const once = this.#atom();
    const end = this.#position;
    const count = this.#quantifier();
    if (count === undefined) return once;
    const after = this.#position;
    let text = "";
    for (let index = 0; index < count && text.length < longestText; index++) {
      this.#position = start;
      text += this.#atom();
    }
    this.#position = Math.max(after, end);
    return text;
  }

  #atom(): string {
    const character = this.#next();
    switch (character) {
      case "^":
      case "$":
        return "";
      case ".":
        return this.#choose(letters);
      case "(":
        return this.#group();
      case "[":
        return this.#choose(this.#characterClass());
      case "\\":
        return this.#escape();
      default:
        return character;
    }
  }

  #group(): string {
    const opening = /^\?(?::|<[^=!>]+>|[=!]|<[=!])/.exec(this.#pattern.slice(this.#position))?.[0];
    if (opening !== undefined) this.#position += opening.length;
    const text = this.#alternatives();
    this.#take(")");
    // What looks around stands for no characters of its own.
    return opening !== undefined && /[=!]$/.test(opening) ? "" : text;
  }

  #escape(): string {
    const character = this.#next();
    if (character === "b" || character === "B") return "";
    const characters = this.#classOf(character);
    return characters === undefined ? this.#literal(character) : this.#choose(characters);
  }

  #classOf(character: string): string | undefined {
    if (character !== "p" && character !== "P") return classCharacters[character];
    const name = /^\{([^}]*)\}/.exec(this.#pattern.slice(this.#position));
    this.#position += name?.[0].length ?? 0;
    if (name?.[1]?.startsWith("N")) return digits;
    return name?.[1]?.startsWith("Lu") ? letters.toUpperCase() : letters;
  }

  #literal(character: string): string {
    const width = character === "x" ? 2 : character === "u" ? 4 : 0;
    const code = this.#pattern.slice(this.#position, this.#position + width);
    if (width > 0 && /^[0-9a-fA-F]+$/.test(code)) {
      this.#position += width;
      return String.fromCodePoint(Number.parseInt(code, 16));
    }
    return escapedCharacters[character] ?? character;
  }

  #characterClass(): string {
    const isNegated = this.#take("^");
    let members = "";
    for (let isFirst = true; this.#position < this.#pattern.length; isFirst = false) {
      if (!isFirst && this.#peek() === "]") break;
      members += this.#classMember();
    }
    this.#take("]");
    if (!isNegated) return members;
    return Array.from(printable)
      .filter((character) => !members.includes(character))
      .join("");
  }

  #classMember(): string {
    const character = this.#next();
    const escaped = character === "\\" ? this.#next() : undefined;
    const characters = escaped === undefined ? undefined : this.#classOf(escaped);
    if (characters !== undefined) return characters;
    const first = escaped === undefined ? character : this.#literal(escaped);
    const isRange = this.#peek() === "-" && !["]", ""].includes(this.#peek(1));
    if (!isRange) return first;
    this.#position += 1;
    const last = this.#next();
    return charactersBetween(first, last === "\\" ? this.#literal(this.#next()) : last);
  }

  /** How often the atom before is repeated; undefined when no quantifier follows it. */
  #quantifier(): number | undefined {
    const found = /^(?:[*+?]|\{(\d+)(,)?(\d*)\})\??/.exec(this.#pattern.slice(this.#position));
    if (found === null) return undefined;
    this.#position += found[0].length;
    if (found[0].startsWith("?")) return this.#random.integer(0, 1);
    if (found[0].startsWith("*")) return this.#random.integer(0, 4);
    if (found[0].startsWith("+")) return this.#random.integer(1, 6);
    const lowest = Number(found[1]);
    if (found[2] === undefined) return lowest;
    const highest = found[3] === undefined || found[3] === "" ? lowest + 4 : Number(found[3]);
    return this.#random.integer(lowest, Math.min(highest, lowest + 8));
  }

  #choose(characters: string): string {
    return this.#random.pickAny(Array.from(characters)) ?? "";
  }

  #peek(ahead = 0): string {
    return this.#pattern.charAt(this.#position + ahead);
  }

  #next(): string {
    const character = this.#pattern.charAt(this.#position);
    this.#position += 1;
    return character;
  }

  #take(character: string): boolean {
    if (this.#peek() !== character) return false;
    this.#position += 1;
    return true;
  }
}

function charactersBetween(first: string, last: string): string {
  const start = first.codePointAt(0) ?? 0;
  const end = Math.min(last.codePointAt(0) ?? start, start + 255);
  let characters = "";
  for (let code = start; code <= end; code++) characters += String.fromCodePoint(code);
  return characters;
}
