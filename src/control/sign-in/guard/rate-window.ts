import type { Clock } from "../../../domain/clock.ts";
import { GatewayError } from "../../../domain/errors/gateway-error.ts";
import { SlidingSum } from "../../../domain/limits/sliding-sum.ts";

/** Most names counted at a time; the least recently used one is dropped first. */
export const countedNamesLimit = 20_000;

const slotMs = 5_000;
/** One slot more than a minute has, so that no period of 60 seconds exceeds the limit. */
const slotCount = 13;

/** Counts attempts by name over any 60 seconds, in bounded memory. */
export class RateWindow {
  readonly #limit: number;
  readonly #clock: Clock;
  /** The least recently used name comes first. */
  readonly #tries = new Map<string, SlidingSum>();

  constructor(limit: number, clock: Clock) {
    this.#limit = limit;
    this.#clock = clock;
  }

  get size(): number {
    return this.#tries.size;
  }

  /** Counts one attempt. Throws 429 when the minute is full; such an attempt is not counted. */
  count(name: string): void {
    const now = this.#clock.monotonic();
    const slot = Math.floor(now / slotMs);
    const tries = this.#tries.get(name) ?? new SlidingSum(slotCount, slot);
    this.#tries.delete(name);
    this.#tries.set(name, tries);
    const isFull = tries.sumAt(slot) >= this.#limit;
    if (!isFull) tries.add(1);
    this.#forgetSome(slot);
    if (!isFull) return;
    const freeAt = (tries.slotFreeing(1) + slotCount) * slotMs;
    throw tooMany(Math.ceil((freeAt - now) / 1000));
  }

  /**
   * Checks the two oldest names at each attempt, so that the map shrinks when there are fewer
   * names.
   */
  #forgetSome(slot: number): void {
    let looks = 2;
    for (const [name, tries] of this.#tries) {
      looks -= 1;
      if (tries.sumAt(slot) > 0 && this.#tries.size <= countedNamesLimit) return;
      this.#tries.delete(name);
      if (looks === 0) return;
    }
  }
}

export function tooMany(waitSeconds: number): GatewayError {
  const wait = Math.max(1, waitSeconds);
  return new GatewayError("too_many_requests", {
    message: `Too many requests. Please wait ${wait} s and try again.`,
    headers: { "retry-after": String(wait), "retry-after-ms": String(wait * 1000) },
  });
}
