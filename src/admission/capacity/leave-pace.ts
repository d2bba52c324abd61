const shortestRetryAfterMs = 1_000;
const longestRetryAfterMs = 30_000;
const longestGapMs = 5_000;
/** Weight of the newest gap in the average. */
const newestShare = 0.1;

/** The pace at which places are given back, for the `Retry-After` of calls that find none. */
export class LeavePace {
  #lastAt: number | undefined;
  #gapMs: number | undefined;

  left(now: number): void {
    if (this.#lastAt !== undefined) {
      // A longer gap means that there were no calls, not that places come back slowly.
      const gapMs = Math.min(now - this.#lastAt, longestGapMs);
      this.#gapMs = (this.#gapMs ?? gapMs) * (1 - newestShare) + gapMs * newestShare;
    }
    this.#lastAt = now;
  }

  /** The expected time until a place is free for a call with this many calls ahead of it. */
  retryAfterMs(waiting: number): number {
    const expectedMs = (this.#gapMs ?? 0) * (waiting + 1);
    return Math.min(Math.max(expectedMs, shortestRetryAfterMs), longestRetryAfterMs);
  }
}
