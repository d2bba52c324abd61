/**
 * Most characters of one request that are scanned, in about 20 ms. The rest counts as no tokens.
 */
const mostScannedCharacters = 4_000_000;

/** A lower bound of the tokens of texts that a model reads. */
export class ReadTexts {
  readonly #texts: readonly string[];
  readonly #fewest: number[] = [];
  #scannableCharacters = mostScannedCharacters;

  constructor(texts: readonly string[]) {
    this.#texts = texts;
  }

  /** The sum of all texts; 0, without a scan, if they cannot have more tokens than `limit`. */
  sumFor(limit: number): number {
    const characters = this.#texts.reduce((sum, { length }) => sum + length, 0);
    if (characters <= limit) return 0;
    return this.#texts.reduce((sum, _, index) => sum + this.#fewestOf(index), 0);
  }

  /** The text with most tokens; texts that cannot have more than `limit` count as 0. */
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

/** The longest tokens of letters and digits have about 40. */
const longestWordToken = 64;
/** Tokenizers made for Chinese need two characters or fewer per token in running text. */
const ideographsPerToken = 4;

/**
 * A lower bound of the tokens of a text for every tokenizer in use: one token for each word, and
 * one for four ideographs. Words are separated by spaces, line ends and punctuation, at which all
 * tokenizers split; spaces and punctuation themselves may belong to a word's token. One pass in
 * constant memory.
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

/** An apostrophe does not split a word. */
const apostrophe = 39;

/** Letters and digits; beyond ASCII, all characters of alphabets, which have many marks. */
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
