/** Of one request; some 20 ms are spent on so many. What is beyond promises nothing. */
const mostScannedCharacters = 4_000_000;

/** Texts that a model reads, and how many tokens they have at least. */
export class ReadTexts {
  readonly #texts: readonly string[];
  readonly #fewest: number[] = [];
  #scannableCharacters = mostScannedCharacters;

  constructor(texts: readonly string[]) {
    this.#texts = texts;
  }

  /** Of all together. What cannot have more tokens than `limit` is not looked at, and tells 0. */
  sumFor(limit: number): number {
    const characters = this.#texts.reduce((sum, { length }) => sum + length, 0);
    if (characters <= limit) return 0;
    return this.#texts.reduce((sum, _, index) => sum + this.#fewestOf(index), 0);
  }

  /** Of the one that has the most; else as above. */
  mostFor(limit: number): number {
    return this.#texts.reduce(
      (most, { length }, index) => (length <= limit ? most : Math.max(most, this.#fewestOf(index))),
      0,
    );
  }

  #fewestOf(index: number): number {
    return (this.#fewest[index] ??= this.#scan(this.#texts[index] ?? ""));
  }

  #scan(text: string): number {
    const scanned = text.slice(0, this.#scannableCharacters);
    this.#scannableCharacters -= scanned.length;
    return fewestTokens(scanned);
  }
}

/** The longest tokens of letters and digits have some 40. */
const longestWordToken = 64;
/** Tokenizers that know Chinese best take two or less in a running text. */
const ideographsPerToken = 4;

/**
 * Fewer tokens than this no tokenizer in use makes of a text: a token for each word, and one for
 * four ideographs. Words are what stands between spaces, line ends and marks, which all tokenizers
 * part from what follows; spaces and marks themselves may belong to a word's token. One pass over
 * the text without memory of it.
 */
export function fewestTokens(text: string): number {
  let words = 0;
  let ideographs = 0;
  let length = 0;
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (isOfWord(code)) {
      if (length % longestWordToken === 0) words += 1;
      length += 1;
    } else if (code !== apostrophe) {
      if (isIdeograph(code)) ideographs += 1;
      length = 0;
    }
  }
  return words + Math.floor(ideographs / ideographsPerToken);
}

/** Within a word it does not part it. */
const apostrophe = 39;

/** Letters and digits; of alphabets beyond ASCII everything, for their marks are many. */
function isOfWord(code: number): boolean {
  if (code >= 128) return code >= 0xc0 && code < 0x2000;
  const letter = code | 32;
  return (letter >= 97 && letter <= 122) || (code >= 48 && code <= 57);
}

/** Chinese, Japanese and Korean, without marks. */
function isIdeograph(code: number): boolean {
  const isKana = code >= 0x3041 && code <= 0x30ff;
  const isHangul = code >= 0xac00 && code <= 0xd7af;
  return isKana || isHangul || (code >= 0x3400 && code <= 0x9fff);
}
