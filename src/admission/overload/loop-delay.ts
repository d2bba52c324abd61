/** The longest delay is taken over the current and the previous span. */
const spanMs = 5_000;

/** The delay of the event loop, by samples of a timer. */
export class LoopDelay {
  #last = 0;
  #standing = 0;
  #spanBegan = 0;
  #longest = 0;
  #longestBefore = 0;

  /**
   * The shorter of the last two samples: a single pause, as for garbage collection, is not load.
   */
  get standingMs(): number {
    return this.#standing;
  }

  add(delayMs: number, now: number): void {
    this.#standing = Math.min(delayMs, this.#last);
    this.#last = delayMs;
    this.#turn(now);
    this.#longest = Math.max(this.#longest, delayMs);
  }

  /** The longest delay of the last five to ten seconds. */
  longestMs(now: number): number {
    this.#turn(now);
    return Math.max(this.#longest, this.#longestBefore);
  }

  #turn(now: number): void {
    const age = now - this.#spanBegan;
    if (age < spanMs) return;
    this.#longestBefore = age < 2 * spanMs ? this.#longest : 0;
    this.#longest = 0;
    this.#spanBegan = now;
  }
}
