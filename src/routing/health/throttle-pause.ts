/** First pause without a Retry-After; it doubles each time in a row. */
const firstPauseMs = 1_000;
/** Low, so that a recovered target gets its calls back within seconds. */
const longestOwnPauseMs = 5_000;
/** Limit on a pause that the provider asks for. */
const longestPauseMs = 300_000;

/** The pause of a target whose provider throttles requests or sent a Retry-After. */
export class ThrottlePause {
  #endsMs = Number.NEGATIVE_INFINITY;
  #timesInRow = 0;

  leftMs(nowMs: number): number {
    return Math.max(0, this.#endsMs - nowMs);
  }

  /**
   * The provider throttled an attempt. The pause lasts for its Retry-After or the growing default,
   * whichever is longer.
   */
  throttled(nowMs: number, retryAfterMs = 0): void {
    // Attempts that ran at the same time and were throttled together count once.
    if (this.leftMs(nowMs) === 0) {
      this.#timesInRow += 1;
      const pauseMs = Math.min(longestOwnPauseMs, firstPauseMs * 2 ** (this.#timesInRow - 1));
      this.#endsMs = nowMs + pauseMs;
    }
    this.asked(nowMs, retryAfterMs);
  }

  /** The provider sent a Retry-After. */
  asked(nowMs: number, retryAfterMs: number): void {
    this.#endsMs = Math.max(this.#endsMs, nowMs + Math.min(retryAfterMs, longestPauseMs));
  }

  /** An attempt was answered. During a pause, the attempt is from before it and does not count. */
  answered(nowMs: number): void {
    if (this.leftMs(nowMs) === 0) this.#timesInRow = 0;
  }
}
