import type { Key } from "../../domain/keys/key.ts";
import { overloaded } from "../../domain/errors/overload-refusal.ts";
import type { Dialect } from "../dialect.ts";
import { prepareRefusal, type PreparedRefusal } from "./error-reply.ts";

export interface Overload {
  /** Whether there is no time for a call; asked once for each, before its body is read. */
  refusesUnread(key: Key): boolean;
  /** What an answer that refuses has to wait for. */
  readonly answersAfter: Promise<void> | undefined;
}

/** How many different times callers are told to come back after. */
const variants = 64;
/** Has no divisor in common with their number, so that each is taken as often as any other. */
const stride = 23;
/** Refusals of one second that can be explained afterwards; the others say no more. */
const explainedASecond = 100;

/** Refusals for want of time, made once: when they are needed, there is no time to make them. */
export class ShedReplies {
  readonly #made: readonly PreparedRefusal[];
  #place = 0;
  #second = 0;
  #explained = 0;

  constructor(dialect: Dialect) {
    this.#made = Array.from({ length: variants }, (_, place) =>
      prepareRefusal(overloaded(place / (variants - 1)), dialect),
    );
  }

  next(): PreparedRefusal {
    this.#place = (this.#place + stride) % variants;
    const made = this.#made[this.#place];
    if (made === undefined) throw new RangeError("there is no such variant");
    return made;
  }

  /** Whether what is known of a refusal is worth the time; `now` is in milliseconds. */
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
