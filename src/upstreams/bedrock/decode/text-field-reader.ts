import { answerTooLarge } from "../../../domain/errors/upstream-failure.ts";
import { objectOf, textOf } from "../../shared/json-fields.ts";
import { textToolField } from "../encode/answer-context.ts";

/** The beginning of the JSON of an object whose only field is the text. */
const opening = new RegExp(`^\\s*\\{\\s*"${textToolField}"\\s*:\\s*"`);
/** JSON of this length can no longer be such a beginning. */
const longestOpening = 256;
/** Largest JSON in another format that is collected and read as a whole. */
const longestOtherJson = 4 * 1024 * 1024;

/**
 * Reads the free text out of `{"input": "..."}` while pieces of that JSON arrive, so that a long
 * text is streamed. JSON in another format is a mistake of the model and becomes the text itself.
 */
export class TextFieldReader {
  #state: "before" | "inside" | "after" | "other" = "before";
  /** JSON that is not read yet. */
  #json = "";

  /** The text that becomes readable with this piece. Throws `UpstreamFailure` over the limit. */
  push(piece: string): string {
    if (this.#state === "after") return "";
    this.#json += piece;
    if (this.#state === "before") this.#readOpening();
    if (this.#state === "inside") return this.#readText();
    if (this.#json.length > longestOtherJson) {
      throw answerTooLarge(`more than ${longestOtherJson} characters of one tool's input`);
    }
    return "";
  }

  /** The text that was held back. A text that was cut off stays cut off. */
  end(): string {
    const isWaiting = this.#state === "before" || this.#state === "other";
    const json = this.#json;
    this.#json = "";
    return isWaiting && json !== "" ? readOtherForm(json) : "";
  }

  #readOpening(): void {
    const match = opening.exec(this.#json);
    if (match !== null) {
      this.#state = "inside";
      this.#json = this.#json.slice(match[0].length);
    } else if (this.#json.length > longestOpening) this.#state = "other";
  }

  #readText(): string {
    const length = readableLength(this.#json);
    const text = unescaped(this.#json.slice(0, length));
    if (this.#json.charAt(length) === '"') this.#state = "after";
    this.#json = this.#state === "after" ? "" : this.#json.slice(length);
    return text;
  }
}

/** Where the readable part of the string ends: at its closing quote or an incomplete escape. */
function readableLength(json: string): number {
  let at = 0;
  while (at < json.length) {
    const character = json.charAt(at);
    if (character === '"') return at;
    if (character === "\\") {
      const width = json.charAt(at + 1) === "u" ? 6 : 2;
      if (at + width > json.length) return at;
      at += width;
    } else at += 1;
  }
  return at;
}

/** Models write unescaped line breaks in strings, which JSON does not allow. */
function unescaped(text: string): string {
  const valid = text.replaceAll(/\p{Cc}/gu, (control) => JSON.stringify(control).slice(1, -1));
  try {
    return String(JSON.parse(`"${valid}"`));
  } catch {
    return text;
  }
}

function readOtherForm(json: string): string {
  try {
    return textOf(objectOf(JSON.parse(json))?.[textToolField]) ?? json;
  } catch {
    return json;
  }
}
