import type { Key } from "../../domain/keys/key.ts";
import { overloaded } from "../../domain/errors/overload-refusal.ts";
import type { Dialect } from "../dialect.ts";
import { prepareRefusal, type PreparedRefusal } from "./error-reply.ts";

export interface Overload {
  /** Whether the call is shed; asked once for each call, before its body is read. */
  refusesUnread(key: Key): boolean;
  /** Delays refusals until it resolves. */
  readonly answersAfter: Promise<void> | undefined;
}

/** Number of different `retry-after` values. */
const variants = 64;
/** Coprime to `variants`, so all of them are used equally often. */
const stride = 23;
/** Refusals of one second that are recorded for `sluice explain`. */
const explainedASecond = 100;

/** Prepared refusals for overload, when there is no time to make them. */
export class ShedReplies {
  readonly #made: readonly PreparedRefusal[];
  #index = 0;
  #second = 0;
  #explained = 0;

  constructor(dialect: Dialect) {
    this.#made = Array.from({ length: variants }, (_, index) =>
      prepareRefusal(overloaded(index / (variants - 1)), dialect),
    );
  }

  next(): PreparedRefusal {
    this.#index = (this.#index + stride) % variants;
    const made = this.#made[this.#index];
    if (made === undefined) throw new RangeError("there is no such variant");
    return made;
  }

  /** Whether this refusal is recorded; `now` is in milliseconds. */
  isExplained(now: number): boolean {
    const second = Math.floor(now / 1_000);
    if (second !== this.#second) {
      this.#second = second;
      this.#explained = 0;
    }
    this.#explained += 1;
    return this.#explained <= explainedASecond;
  }
}
