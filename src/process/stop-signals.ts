import type { Clock } from "../domain/clock.ts";

/**
 * Signals this close together count as one. Terminals and some init systems signal every process,
 * and npm then forwards its own copy: after 0.2 to 5 ms, measured with npm 11 on two cores with
 * four busy loops. A person takes longer to ask twice.
 */
export const sameSignalMs = 25;

/** Distinguishes repeated stop requests from copies of one signal. */
export class StopSignals {
  readonly #clock: Pick<Clock, "monotonic">;
  #countedAt = -Infinity;

  constructor(clock: Pick<Clock, "monotonic">) {
    this.#clock = clock;
  }

  /** Whether the signal that just arrived is a new request. */
  counts(): boolean {
    const now = this.#clock.monotonic();
    if (now - this.#countedAt < sameSignalMs) return false;
    this.#countedAt = now;
    return true;
  }
}
