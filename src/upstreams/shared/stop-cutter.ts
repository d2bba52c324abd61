/**
 * Ends a text before a stop sequence, for models without stop sequences. Of several sequences, the
 * one that is complete first ends the text; if two are complete at the same character, the one that
 * began first. How the text is split into pieces makes no difference: a possible beginning of a
 * sequence is held back until it is decided. Takes time linear in the text for each sequence.
 */
export class StopCutter {
  readonly #matchers: readonly Matcher[];
  /** The end of the text so far, which may begin a sequence. */
  #held = "";
  #found: string | undefined;

  /** Empty sequences are ignored. */
  constructor(sequences: readonly string[]) {
    this.#matchers = sequences.filter((text) => text !== "").map((text) => new Matcher(text));
  }

  /** Whether a stop sequence was found: nothing after it belongs to the answer. */
  get isCut(): boolean {
    return this.#found !== undefined;
  }

  /** The sequence that ended the text. */
  get found(): string | undefined {
    return this.#found;
  }

  /** Takes the next piece of the text; returns what may be sent to the reader. */
  push(piece: string): string {
    if (this.isCut) return "";
    if (this.#matchers.length === 0) return piece;
    const text = this.#held + piece;
    for (let at = this.#held.length; at < text.length; at += 1) {
      const found = this.#lengthOfMatch(text.charCodeAt(at));
      if (found > 0) return this.#cut(text, at + 1 - found, at + 1);
    }
    const heldFrom = text.length - Math.max(0, ...this.#matchers.map(({ matched }) => matched));
    this.#held = text.slice(heldFrom);
    return text.slice(0, heldFrom);
  }

  /** Returns what was held, at the end of the text or at a break that no sequence spans. */
  flush(): string {
    const held = this.#held;
    this.#held = "";
    for (const matcher of this.#matchers) matcher.reset();
    return held;
  }

  #cut(text: string, from: number, to: number): string {
    this.#found = text.slice(from, to);
    this.#held = "";
    return text.slice(0, from);
  }

  /** Length of the longest sequence that is complete with this character, 0 when none is. */
  #lengthOfMatch(character: number): number {
    let longest = 0;
    for (const matcher of this.#matchers) {
      if (matcher.isCompleteWith(character)) longest = Math.max(longest, matcher.matched);
    }
    return longest;
  }
}

/** Finds one sequence in a text, character by character (Knuth-Morris-Pratt). */
class Matcher {
  readonly #sequence: string;
  /** For each length of a prefix, the length of the longest shorter prefix that it ends with. */
  readonly #fallbacks = [0, 0];
  #matched = 0;

  constructor(sequence: string) {
    this.#sequence = sequence;
    for (let at = 1; at < sequence.length; at += 1) {
      this.#fallbacks.push(this.#next(this.#fallbacks[at] ?? 0, sequence.charCodeAt(at)));
    }
  }

  /** How many characters of the sequence the text ends with. */
  get matched(): number {
    return this.#matched;
  }

  reset(): void {
    this.#matched = 0;
  }

  isCompleteWith(character: number): boolean {
    this.#matched = this.#next(this.#matched, character);
    return this.#matched === this.#sequence.length;
  }

  /** How many characters match after one more. */
  #next(before: number, character: number): number {
    let matched = before;
    while (matched > 0 && this.#sequence.charCodeAt(matched) !== character) {
      matched = this.#fallbacks[matched] ?? 0;
    }
    return this.#sequence.charCodeAt(matched) === character ? matched + 1 : 0;
  }
}
