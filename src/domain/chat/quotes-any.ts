/** Ends a message that was cut, possibly within a text that it quotes. */
const cutMark = "...";
/** Shorter parts of a cut text reveal nothing. */
const leastPart = 6;

/**
 * Whether a message quotes one of the texts in any notation: plain, split by white space, with
 * JSON, URL or HTML escapes, in hexadecimal, or in base64 with other bytes. Case-insensitive. Texts
 * are ASCII.
 */
export function quotesAny(words: string, texts: readonly string[]): boolean {
  const plain = plainOf(words);
  const isCut = words.endsWith(cutMark);
  return texts
    .flatMap(formsOf)
    .some((form) => plain.includes(form) || (isCut && endsWithPart(plain, form)));
}

/** An escape of one character, of URLs, JavaScript, JSON and HTML. */
const escape =
  /%([0-9a-f]{2})|\\x([0-9a-f]{2})|\\u([0-9a-f]{4})|&#x0{0,4}([0-9a-f]{2});|&#0{0,4}(\d{2,3});|\\[nrt]|&amp;/gi;
/** Text that is escaped more often is not recognised. */
const mostEscapes = 3;
/** White space and invisible characters, backslashes of escapes, and base64 padding. */
const ignored = /[\s\\=\u00ad\u200b-\u200f\u2060\ufeff]/g;

/** Without escapes and what may split a text; base64 for URLs is like any other. */
function plainOf(words: string): string {
  let text = words;
  for (let round = 0; round < mostEscapes; round += 1) text = text.replaceAll(escape, decodeEscape);
  return text.replaceAll(ignored, "").replaceAll("-", "+").replaceAll("_", "/").toLowerCase();
}

function decodeEscape(whole: string, ...digits: readonly (string | undefined)[]): string {
  const [percent, short, long, hex, decimal] = digits;
  const code = percent ?? short ?? long ?? hex;
  if (code !== undefined) return String.fromCharCode(Number.parseInt(code, 16));
  if (decimal !== undefined) return String.fromCharCode(Number(decimal));
  return whole.startsWith("&") ? "&" : " ";
}

/** All notations of a text, in the form that `plainOf` produces. */
function formsOf(text: string): readonly string[] {
  const bytes = Buffer.from(text);
  const inDigits = [0, 1, 2].map((before) => inBase64(bytes, before));
  const forms = [text, bytes.toString("hex"), ...inDigits].map(plainOf);
  return forms.filter((form) => form !== "");
}

/** The base64 digits that depend only on the text, when this many bytes (modulo 3) precede it. */
function inBase64(bytes: Uint8Array, before: number): string {
  const digits = Buffer.concat([new Uint8Array(before), bytes]).toString("base64");
  return digits.slice(
    Math.ceil((before * 8) / 6),
    Math.floor(((before + bytes.byteLength) * 8) / 6),
  );
}

/** Whether the beginning of a form is all that stands before the cut mark. */
function endsWithPart(plain: string, form: string): boolean {
  const kept = plain.slice(0, -cutMark.length);
  const opening = form.slice(0, leastPart);
  for (let at = kept.indexOf(opening); at !== -1; at = kept.indexOf(opening, at + 1)) {
    if (form.startsWith(kept.slice(at))) return true;
  }
  return false;
}
