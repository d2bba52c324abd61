/** Each of two spans of time that the longest delay is looked for in. */
const spanMs = 5_000;

/** How late things run on the event loop, by samples of a timer. */
export class LoopDelay {
  #last = 0;
  #standing = 0;
  #spanBegan = 0;
  #longest = 0;
  #longestBefore = 0;

  /**
   * What has been waited for lately, whatever came: the shorter of the last two samples. A single
   * pause, as for a collection of garbage, is no load.
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

  /** Of the last five to ten seconds. */
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
