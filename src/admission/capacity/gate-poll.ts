import type { Clock } from "../../domain/clock.ts";

/** How often the queue is served without an event. */
const pollMs = 1_000;
const leastPollMs = 5;

/** Serves the queue again for tokens that come back with time and for changed bounds. */
export class GatePoll {
  readonly #clock: Clock;
  readonly #look: () => void;
  /** When the tokens that were last refused are free, in monotonic milliseconds. */
  #tokensAt = 0;
  #cancel: (() => void) | undefined;

  constructor(clock: Clock, look: () => void) {
    this.#clock = clock;
    this.#look = look;
  }

  /** The time left until then; 0 or less once it has passed. */
  get tokensWaitMs(): number {
    return this.#tokensAt - this.#clock.monotonic();
  }

  tokensFreeIn(waitMs: number): void {
    this.#tokensAt = this.#clock.monotonic() + waitMs;
  }

  /** Replaces the earlier plan. */
  plan(isNeeded: boolean): void {
    this.#cancel?.();
    this.#cancel = undefined;
    if (!isNeeded) return;
    const waitMs = this.tokensWaitMs;
    const delayMs = waitMs > 0 ? Math.min(Math.max(waitMs, leastPollMs), pollMs) : pollMs;
    this.#cancel = this.#clock.schedule(this.#look, delayMs);
  }
}
