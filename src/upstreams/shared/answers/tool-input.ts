import { answerTooLarge } from "../../../domain/errors/upstream-failure.ts";
import { objectOf, parseJson, textOf } from "../../../domain/json-fields.ts";
import { textToolField } from "./answer-context.ts";

/** Takes the pieces of a tool's input as they arrive, and forwards what the caller should see. */
export interface ToolInput {
  push(json: string): void;
  /** Call once, at the end of the input. */
  end(): void;
}

type Emit = (text: string) => void;

/** Input that is forwarded as JSON. */
export class JsonInput implements ToolInput {
  readonly #emit: Emit;
  #isEmpty = true;

  constructor(emit: Emit) {
    this.#emit = emit;
  }

  push(json: string): void {
    if (json === "") return;
    this.#isEmpty = false;
    this.#emit(json);
  }

  /** A tool without arguments gets no input, but its arguments must be JSON. */
  end(): void {
    if (this.#isEmpty) this.#emit("{}");
  }
}

export const ignoredInput: ToolInput = {
  push: () => undefined,
  end: () => undefined,
};

/** The beginning of the JSON of an object whose only field is the text. */
const opening = new RegExp(`^\\s*\\{\\s*"${textToolField}"\\s*:\\s*"`);
/** JSON of this length can no longer be such a beginning. */
const longestOpening = 256;
/** Largest JSON in another format that is collected and read as a whole. */
const longestOtherJson = 4 * 1024 * 1024;

/**
 * Input of which the caller gets the text of one field, as it arrives: `{"input": "..."}`. JSON in
 * another format is a mistake of the model and becomes the text itself.
 */
export class FreeTextInput implements ToolInput {
  readonly #emit: Emit;
  #state: "before" | "inside" | "after" | "other" = "before";
  /** JSON that is not read yet. */
  #json = "";

  constructor(emit: Emit) {
    this.#emit = emit;
  }

  /** Throws `UpstreamFailure` over the limit. */
  push(piece: string): void {
    if (this.#state === "after") return;
    this.#json += piece;
    if (this.#state === "before") this.#readOpening();
    if (this.#state === "inside") return this.#readText();
    if (this.#json.length > longestOtherJson) {
      throw answerTooLarge(`more than ${longestOtherJson} characters of one tool's input`);
    }
  }

  /** A text that was cut off stays cut off. */
  end(): void {
    if (this.#state === "before" || this.#state === "other") this.#say(readOtherForm(this.#json));
  }

  #readOpening(): void {
    const match = opening.exec(this.#json);
    if (match !== null) {
      this.#state = "inside";
      this.#json = this.#json.slice(match[0].length);
    } else if (this.#json.length > longestOpening) this.#state = "other";
  }

  #readText(): void {
    const length = readableLength(this.#json);
    const text = unescaped(this.#json.slice(0, length));
    if (this.#json.charAt(length) === '"') this.#state = "after";
    this.#json = this.#state === "after" ? "" : this.#json.slice(length);
    this.#say(text);
  }

  #say(text: string): void {
    if (text !== "") this.#emit(text);
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
  return textOf(parseJson(`"${valid}"`)) ?? text;
}

function readOtherForm(json: string): string {
  return textOf(objectOf(parseJson(json))?.[textToolField]) ?? json;
}
