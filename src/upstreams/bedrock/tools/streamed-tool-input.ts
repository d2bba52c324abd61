import type { TextFieldReader } from "../decode/text-field-reader.ts";

/** Takes the pieces of a tool's input as they come, and passes on what the caller should see. */
export interface ToolInput {
  push(json: string): void;
  /** Call once, at the end of the input. */
  end(): void;
}

type Say = (text: string) => void;

/** Input that is passed on as the JSON it is. */
export class JsonInput implements ToolInput {
  readonly #say: Say;
  #isEmpty = true;

  constructor(say: Say) {
    this.#say = say;
  }

  push(json: string): void {
    if (json === "") return;
    this.#isEmpty = false;
    this.#say(json);
  }

  /** A tool without arguments gets no input, but its arguments must be JSON. */
  end(): void {
    if (this.#isEmpty) this.#say("{}");
  }
}

/** Input of which the caller sees the text of one field. */
export class TextInput implements ToolInput {
  readonly #say: Say;
  readonly #reader: TextFieldReader;

  constructor(say: Say, reader: TextFieldReader) {
    this.#say = say;
    this.#reader = reader;
  }

  push(json: string): void {
    this.#pass(this.#reader.push(json));
  }

  end(): void {
    this.#pass(this.#reader.end());
  }

  #pass(text: string): void {
    if (text !== "") this.#say(text);
  }
}

export const ignoredInput: ToolInput = {
  push: () => undefined,
  end: () => undefined,
};
