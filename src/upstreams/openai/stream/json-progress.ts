/** Follows a JSON text in pieces, to see where its object or list is complete, in linear time. */
export class JsonProgress {
  #depth = 0;
  #hasBegun = false;
  #isInText = false;
  #isEscaped = false;

  /** Whether an object or a list has begun and ended. Other values never are. */
  get isComplete(): boolean {
    return this.#hasBegun && this.#depth === 0;
  }

  /** Whether an object, a list or a text has begun and not ended. */
  get isOpen(): boolean {
    return this.#depth > 0 || this.#isInText;
  }

  push(text: string): void {
    for (let at = 0; at < text.length; at += 1) {
      if (this.#isInText) at = this.#endOfText(text, at);
      else this.#readStructure(text.charCodeAt(at));
    }
  }

  /** The position of the quote that ends a text, or the end. */
  #endOfText(text: string, start: number): number {
    for (let at = start; at < text.length; at += 1) {
      const code = text.charCodeAt(at);
      if (this.#isEscaped) this.#isEscaped = false;
      else if (code === backslash) this.#isEscaped = true;
      else if (code === quote) {
        this.#isInText = false;
        return at;
      }
    }
    return text.length;
  }

  #readStructure(code: number): void {
    if (code === quote) this.#isInText = true;
    else if (code === openBrace || code === openBracket) {
      this.#hasBegun = true;
      this.#depth += 1;
    } else if ((code === closeBrace || code === closeBracket) && this.#depth > 0) {
      this.#depth -= 1;
    }
  }
}

const quote = 0x22;
const openBracket = 0x5b;
const backslash = 0x5c;
const closeBracket = 0x5d;
const openBrace = 0x7b;
const closeBrace = 0x7d;
