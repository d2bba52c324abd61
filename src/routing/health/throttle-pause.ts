/** Where the provider does not say how long; each time in a row it is twice as long. */
const firstPauseMs = 1_000;
/** A target that works again gets its calls back within seconds. */
const longestOwnPauseMs = 5_000;
/** No provider can take a target away for longer by its word. */
const longestPauseMs = 300_000;

/** For how long a target gets no calls because its provider limits requests, or asked for it. */
export class ThrottlePause {
  #endsMs = Number.NEGATIVE_INFINITY;
  #timesInRow = 0;

  leftMs(nowMs: number): number {
    return Math.max(0, this.#endsMs - nowMs);
  }

  /**
   * The provider refused an attempt for the number of requests. It pauses for the time that the
   * provider named, or for the growing time of its own where that is longer.
   */
  throttled(nowMs: number, retryAfterMs = 0): void {
    // Refusals of attempts that were under way together are one.
    if (this.leftMs(nowMs) === 0) {
      this.#timesInRow += 1;
      const pauseMs = Math.min(longestOwnPauseMs, firstPauseMs * 2 ** (this.#timesInRow - 1));
      this.#endsMs = nowMs + pauseMs;
    }
    this.asked(nowMs, retryAfterMs);
  }

  /** The provider named a time. */
  asked(nowMs: number, retryAfterMs: number): void {
    this.#endsMs = Math.max(this.#endsMs, nowMs + Math.min(retryAfterMs, longestPauseMs));
  }

  /** An attempt was answered. One from before the pause says nothing about its reason. */
  answered(nowMs: number): void {
    if (this.leftMs(nowMs) === 0) this.#timesInRow = 0;
  }
}
