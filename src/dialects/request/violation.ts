import { GatewayError, type GatewayErrorName } from "../../domain/errors/gateway-error.ts";

export interface ViolationText {
  /** The message, given the path of the field at fault. */
  readonly message: (path: string) => string;
  /** The `param` of the error; the path itself when absent. */
  readonly param?: (path: string) => string | null;
}

/**
 * The first fault that a check found. Containers prepend their names as it propagates, so a valid
 * body never builds a path.
 */
export class Violation {
  readonly #row: GatewayErrorName;
  readonly #text: ViolationText;
  #path = "";

  constructor(row: GatewayErrorName, text: ViolationText) {
    this.#row = row;
    this.#text = text;
  }

  insideField(name: string): this {
    if (this.#path === "") this.#path = name;
    else this.#path = this.#path.startsWith("[") ? name + this.#path : `${name}.${this.#path}`;
    return this;
  }

  insideItem(index: number): this {
    return this.insideField(`[${index}]`);
  }

  toError(): GatewayError {
    const { message, param } = this.#text;
    return new GatewayError(this.#row, {
      message: message(this.#path),
      param: param === undefined ? this.#path : param(this.#path),
    });
  }
}
