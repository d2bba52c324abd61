import type { Clock } from "../domain/clock.ts";

/**
 * Signals so close together are one wish. A terminal and some init systems signal every process,
 * and npm, which is one of them, passes its signal on: after 0.2 to 5 ms, measured with npm 11 on
 * two cores with four busy loops. Who asks for the second time needs longer.
 */
export const sameWishMs = 25;

/** Tells requests to end from the echo of the one before. */
export class EndWishes {
  readonly #clock: Pick<Clock, "monotonic">;
  #countedAt = -Infinity;

  constructor(clock: Pick<Clock, "monotonic">) {
    this.#clock = clock;
  }

  /** Whether the signal that just came counts. */
  counts(): boolean {
    const now = this.#clock.monotonic();
    if (now - this.#countedAt < sameWishMs) return false;
    this.#countedAt = now;
    return true;
  }
}
