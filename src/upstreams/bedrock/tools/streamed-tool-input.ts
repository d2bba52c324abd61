import type { TextFieldReader } from "../decode/text-field-reader.ts";

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

/** Input of which the caller gets the text of one field. */
export class TextInput implements ToolInput {
  readonly #emit: Emit;
  readonly #reader: TextFieldReader;

  constructor(emit: Emit, reader: TextFieldReader) {
    this.#emit = emit;
    this.#reader = reader;
  }

  push(json: string): void {
    this.#pass(this.#reader.push(json));
  }

  end(): void {
    this.#pass(this.#reader.end());
  }

  #pass(text: string): void {
    if (text !== "") this.#emit(text);
  }
}

export const ignoredInput: ToolInput = {
  push: () => undefined,
  end: () => undefined,
};
