import { objectOf, textOf } from "../../shared/json-fields.ts";
import { textToolField } from "../encode/answer-context.ts";
import { brokenAnswer } from "./broken-answer.ts";

/** The beginning of the JSON of an object whose only field is the text. */
const opening = new RegExp(`^\\s*\\{\\s*"${textToolField}"\\s*:\\s*"`);
/** From this length on, JSON cannot be such a beginning any more. */
const longestOpening = 256;
/** Largest JSON of another form that is collected to be read as a whole. */
const longestOtherJson = 4 * 1024 * 1024;

/**
 * Reads the free text out of `{"input": "..."}` while the pieces of that JSON come, so a long text
 * streams. JSON of another form is the model's mistake and becomes the text itself.
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
    if (this.#json.length > longestOtherJson) throw brokenAnswer("a tool's input is too long");
    return "";
  }

  /** The text that was held back. A text that was cut short stays cut. */
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
      const width = escapeWidth(json, at);
      if (at + width > json.length) return at;
      at += width;
    } else at += 1;
  }
  return at;
}

/** Escaped surrogates of one character stay together: not every client can join them again. */
function escapeWidth(json: string, at: number): number {
  if (json.charAt(at + 1) !== "u") return 2;
  const isFirstHalf = /^\\u[dD][89abAB]/.test(json.slice(at, at + 4));
  const next = json.slice(at + 6, at + 8);
  return isFirstHalf && "\\u".startsWith(next) ? 12 : 6;
}

/** Models write unescaped line breaks into strings, which JSON does not allow. */
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
