import type { Clock } from "../../domain/clock.ts";

/** How often those who wait are looked at though nothing seems to have happened. */
const pollMs = 1_000;
const leastPollMs = 5;

/** Tokens come back with time, and bounds change, without anybody leaving: looks again for those. */
export class GatePoll {
  readonly #clock: Clock;
  readonly #look: () => void;
  /** When the tokens that were refused last are free; monotonic. */
  #tokensAt = 0;
  #cancel: (() => void) | undefined;

  constructor(clock: Clock, look: () => void) {
    this.#clock = clock;
    this.#look = look;
  }

  /** What is left of that time; 0 or less when it is over. */
  get tokensWaitMs(): number {
    return this.#tokensAt - this.#clock.monotonic();
  }

  tokensFreeIn(waitMs: number): void {
    this.#tokensAt = this.#clock.monotonic() + waitMs;
  }

  /** In place of what was planned before. */
  plan(isNeeded: boolean): void {
    this.#cancel?.();
    this.#cancel = undefined;
    if (!isNeeded) return;
    const waitMs = this.tokensWaitMs;
    const delayMs = waitMs > 0 ? Math.min(Math.max(waitMs, leastPollMs), pollMs) : pollMs;
    this.#cancel = this.#clock.schedule(this.#look, delayMs);
  }
}
