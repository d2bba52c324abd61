/** Where the provider does not say how long; each time in a row it is twice as long. */
const firstPauseMs = 1_000;
const longestOwnPauseMs = 30_000;
/** No provider can take a target away for longer by its word. */
const longestPauseMs = 300_000;

/** For how long a target's provider asked to be left alone. */
export class ThrottlePause {
  #endsMs = Number.NEGATIVE_INFINITY;
  #timesInRow = 0;

  leftMs(nowMs: number): number {
    return Math.max(0, this.#endsMs - nowMs);
  }

  /** The provider refused an attempt for the number of requests. */
  throttled(nowMs: number, retryAfterMs: number | undefined): void {
    if (retryAfterMs !== undefined) {
      this.asked(nowMs, retryAfterMs);
      return;
    }
    // Refusals of attempts that were under way together are one.
    if (this.leftMs(nowMs) > 0) return;
    this.#timesInRow += 1;
    const pauseMs = Math.min(longestOwnPauseMs, firstPauseMs * 2 ** (this.#timesInRow - 1));
    this.#endsMs = nowMs + pauseMs;
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
