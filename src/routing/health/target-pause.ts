/** First pause without a Retry-After; it doubles each time in a row. */
const firstPauseMs = 1_000;
/** Low, so that a recovered target gets its calls back within seconds. */
const longestOwnPauseMs = 5_000;
/** Limit on a pause that the provider asks for. */
const longestPauseMs = 300_000;
/** Limit on keys with a pause of their own; the oldest is dropped. */
const mostKeys = 64;

/**
 * Pauses of one target whose provider throttles requests, or is overloaded and sends a Retry-After.
 * A refusal pauses the target for its key alone, because the key's own requests may be the cause.
 * It is paused for all keys as long as it is for two of them, so no key can make a pause longer
 * than others' refusals do.
 */
export class TargetPause {
  /** When the pause of a key ends. */
  readonly #ends = new Map<string, number>();
  #endsForAllMs = Number.NEGATIVE_INFINITY;
  #timesInRow = 0;
  /** Attempts that ran at the same time and were throttled together count once. */
  #countsAgainMs = Number.NEGATIVE_INFINITY;

  leftMs(key: string, nowMs: number): number {
    const ownMs = this.#ends.get(key) ?? 0;
    return Math.max(0, ownMs - nowMs, this.#endsForAllMs - nowMs);
  }

  leftForAllMs(nowMs: number): number {
    return Math.max(0, this.#endsForAllMs - nowMs);
  }

  /**
   * The provider refused an attempt because of a rate limit. The pause lasts for its Retry-After or
   * the growing default, whichever is longer.
   */
  throttled(key: string, nowMs: number, retryAfterMs = 0): void {
    if (nowMs >= this.#countsAgainMs) {
      this.#timesInRow += 1;
      this.#countsAgainMs = nowMs + this.#defaultMs;
    }
    // Refusals of attempts that began before the pause do not make it longer.
    const isPaused = this.leftMs(key, nowMs) > 0 && this.#ends.has(key);
    this.asked(key, nowMs, Math.max(retryAfterMs, isPaused ? 0 : this.#defaultMs));
  }

  /** The provider sent a Retry-After. */
  asked(key: string, nowMs: number, retryAfterMs: number): void {
    const endsMs = nowMs + Math.min(retryAfterMs, longestPauseMs);
    const before = this.#ends.get(key) ?? Number.NEGATIVE_INFINITY;
    if (this.#ends.size >= mostKeys && !this.#ends.has(key)) {
      const [first] = this.#ends.keys();
      if (first !== undefined) this.#ends.delete(first);
    }
    this.#ends.set(key, Math.max(before, endsMs));
    const [, second] = [...this.#ends.values()].sort((one, other) => other - one);
    this.#endsForAllMs = Math.max(this.#endsForAllMs, second ?? Number.NEGATIVE_INFINITY);
  }

  /** An attempt was answered. During a pause, the attempt is from before it and does not count. */
  answered(key: string, nowMs: number): void {
    if (this.#timesInRow > 0 && this.leftMs(key, nowMs) === 0) this.#timesInRow = 0;
  }

  get #defaultMs(): number {
    return Math.min(longestOwnPauseMs, firstPauseMs * 2 ** (this.#timesInRow - 1));
  }
}
