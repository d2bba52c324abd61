const removed = "[removed]";
/** Ends a message that was cut, possibly within a text to remove. */
const cutMark = "...";
/** Shorter parts of a cut text reveal nothing. */
const leastPart = 6;

/**
 * Removes texts from a message in any notation: plain, split by white space, with JSON, URL or HTML
 * escapes, in hexadecimal, or in base64 with other bytes. Case-insensitive. Texts are ASCII.
 */
export function removeTexts(words: string, texts: readonly string[]): string {
  const plain = plainOf(words);
  const forms = texts.flatMap(formsOf);
  const spans = forms.flatMap((form) => spansOf(form, plain));
  if (words.endsWith(cutMark)) spans.push(...partsAtEnd(forms, plain));
  let result = "";
  let end = 0;
  for (const span of spans.toSorted((one, other) => one.start - other.start)) {
    if (span.start >= end) result += words.slice(end, span.start) + removed;
    end = Math.max(end, span.end);
  }
  return result + words.slice(end);
}

interface Span {
  readonly start: number;
  readonly end: number;
}

/** Words with escapes decoded, and the position of each character in the original. */
interface PlainWords {
  readonly text: string;
  readonly spans: readonly Span[];
}

/** A decoded character and the span of its notation. */
interface Character {
  readonly text: string;
  readonly span: Span;
}

function plainOf(words: string): PlainWords {
  const characters: Character[] = [];
  let introducedAt = Number.NEGATIVE_INFINITY;
  for (let index = 0; index < words.length; index += 1) {
    characters.push({ text: words.charAt(index), span: { start: index, end: index + 1 } });
    do {
      if (introducers.has(characters.at(-1)?.text ?? "")) introducedAt = characters.length - 1;
      // A decoded character may be part of another escape.
    } while (characters.length - introducedAt <= longestEscape && decodeEnd(characters));
  }
  const kept = characters.filter(({ text }) => !isIgnored(text));
  return {
    text: kept.map(({ text }) => alike[text] ?? text.toLowerCase()).join(""),
    spans: kept.map(({ span }) => span),
  };
}

const introducers: ReadonlySet<string> = new Set(["%", "\\", "&"]);

/** White space and invisible characters, backslashes of escapes, and base64 padding. */
function isIgnored(character: string): boolean {
  return unseen.has(character) || character.trim() === "";
}

const unseen: ReadonlySet<string> = new Set(
  "\\=\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff".split(""),
);
/** Digits that URL-safe base64 writes differently. */
const alike: Readonly<Record<string, string>> = { "-": "+", _: "/" };

const longestEscape = 10;
const escape =
  /(?:%([0-9a-f]{2})|\\x([0-9a-f]{2})|\\u([0-9a-f]{4})|&#x0{0,4}([0-9a-f]{2});|&#0{0,4}(\d{2,3});|(\\[nrt])|(&amp;))$/i;

/** Replaces an escape at the end of the list by its character; false if there is none. */
function decodeEnd(characters: Character[]): boolean {
  const tail = characters.slice(-longestEscape);
  const last = tail.at(-1);
  if (last === undefined || !/[0-9a-fnrt;]/i.test(last.text)) return false;
  const match = escape.exec(tail.map(({ text }) => text).join(""));
  const first = match === null ? undefined : tail[match.index];
  if (match === null || first === undefined) return false;
  const [whole, percent, short, long, hex, decimal, space] = match;
  const code = percent ?? short ?? long ?? hex;
  let text = space === undefined ? "&" : " ";
  if (code !== undefined) text = String.fromCharCode(Number.parseInt(code, 16));
  if (decimal !== undefined) text = String.fromCharCode(Number(decimal));
  const span = { start: first.span.start, end: last.span.end };
  characters.splice(characters.length - whole.length, whole.length, { text, span });
  return true;
}

/** All notations of a text, in the form that `plainOf` produces. */
function formsOf(text: string): readonly string[] {
  const bytes = Buffer.from(text);
  const inDigits = [0, 1, 2].map((before) => inBase64(bytes, before).toLowerCase());
  return [plainForm(text), bytes.toString("hex"), ...inDigits].filter((form) => form !== "");
}

/** A fast `plainOf` for texts without escapes. */
function plainForm(form: string): string {
  if (/[^\w\s+/=,;:.-]/.test(form)) return plainOf(form).text;
  return form.replaceAll(/[\s=]/g, "").replaceAll("-", "+").replaceAll("_", "/").toLowerCase();
}

/** The base64 digits that depend only on the text, when this many bytes (modulo 3) precede it. */
function inBase64(bytes: Uint8Array, before: number): string {
  const digits = Buffer.concat([new Uint8Array(before), bytes]).toString("base64");
  return digits.slice(
    Math.ceil((before * 8) / 6),
    Math.floor(((before + bytes.byteLength) * 8) / 6),
  );
}

function spansOf(form: string, { text, spans }: PlainWords): readonly Span[] {
  const found: Span[] = [];
  for (let at = text.indexOf(form); at !== -1; at = text.indexOf(form, at + 1)) {
    const start = spans[at]?.start;
    const end = spans[at + form.length - 1]?.end;
    if (start !== undefined && end !== undefined) found.push({ start, end });
  }
  return found;
}

/** Beginnings of forms at the end of the words, before the cut mark. */
function partsAtEnd(forms: readonly string[], { text, spans }: PlainWords): readonly Span[] {
  const kept = text.slice(0, -cutMark.length);
  const end = spans[kept.length]?.start;
  if (end === undefined) return [];
  return forms.flatMap((form) => {
    const opening = form.slice(0, leastPart);
    let at = kept.indexOf(opening, Math.max(0, kept.length - form.length));
    while (at !== -1 && !form.startsWith(kept.slice(at))) at = kept.indexOf(opening, at + 1);
    const start = spans[at]?.start;
    return start === undefined ? [] : [{ start, end }];
  });
}
