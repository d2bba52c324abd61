const shortestRetryAfterMs = 1_000;
const longestRetryAfterMs = 30_000;
const longestGapMs = 5_000;
/** Share of the newest gap in what is expected of the next. */
const newestShare = 0.1;

/** The pace at which places are given back, from which those who find none learn when to return. */
export class LeavePace {
  #lastAt: number | undefined;
  #gapMs: number | undefined;

  left(now: number): void {
    if (this.#lastAt !== undefined) {
      // A longer one tells that nobody was there, not how fast places come back.
      const gapMs = Math.min(now - this.#lastAt, longestGapMs);
      this.#gapMs = (this.#gapMs ?? gapMs) * (1 - newestShare) + gapMs * newestShare;
    }
    this.#lastAt = now;
  }

  /** When a place may be free for who comes behind so many others. */
  retryAfterMs(waiting: number): number {
    const expectedMs = (this.#gapMs ?? 0) * (waiting + 1);
    return Math.min(Math.max(expectedMs, shortestRetryAfterMs), longestRetryAfterMs);
  }
}
