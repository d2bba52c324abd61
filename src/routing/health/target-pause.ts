/** First pause without a Retry-After; it doubles each time in a row. */
const firstPauseMs = 1_000;
/** Low, so that a recovered target gets its calls back within seconds. */
const longestOwnPauseMs = 5_000;
/** Limit on a pause that the provider asks for. */
const longestPauseMs = 300_000;
/** Limit on keys with a pause of their own; the oldest is dropped. */
const mostKeys = 64;

/** A refusal with what its call and its answer say. */
export interface Refusal {
  readonly retryAfterMs?: number | undefined;
  /** Default: an account of its own. */
  readonly account?: string | undefined;
}

interface KeyPause {
  readonly endsMs: number;
  readonly account: string;
}

/**
 * Pauses of one target whose provider throttles requests, or is overloaded and sends a Retry-After.
 * A refusal pauses the target for its key alone, because the key's own requests may be the cause.
 * It is paused for all keys as long as it is for keys of two accounts, for seconds if they are of
 * one, and shortly again if the first attempt after that is refused too. So neither a key nor an
 * account can make a pause longer than others' refusals do.
 */
export class TargetPause {
  readonly #pauses = new Map<string, KeyPause>();
  #endsForAllMs = 0;
  /** It was paused for all keys, and none has been answered since. */
  #isForAllInRow = false;
  #timesInRow = 0;
  /** Attempts that ran at the same time and were throttled together count once. */
  #countsAgainMs = Number.NEGATIVE_INFINITY;

  leftMs(key: string, nowMs: number): number {
    const ownMs = this.#pauses.get(key)?.endsMs ?? 0;
    return Math.max(0, ownMs - nowMs, this.#endsForAllMs - nowMs);
  }

  leftForAllMs(nowMs: number): number {
    return Math.max(0, this.#endsForAllMs - nowMs);
  }

  /**
   * The provider refused an attempt because of a rate limit. The pause lasts for its Retry-After or
   * the growing default, whichever is longer.
   */
  throttled(key: string, nowMs: number, refusal: Refusal = {}): void {
    // Refusals of attempts that began before the pause do not make it longer.
    let pauseMs = this.leftMs(key, nowMs);
    if (pauseMs === 0) {
      pauseMs = this.#nextPauseMs(nowMs);
      if (this.#isForAllInRow) {
        this.#endsForAllMs = nowMs + pauseMs;
        // The next attempt is one of another key, which shows whether all are still refused.
        pauseMs *= 2;
      }
    }
    const retryAfterMs = Math.max(refusal.retryAfterMs ?? 0, pauseMs);
    this.asked(key, nowMs, { ...refusal, retryAfterMs });
  }

  /** The provider sent a Retry-After. */
  asked(key: string, nowMs: number, { retryAfterMs = 0, account = key }: Refusal): void {
    const endsMs = nowMs + Math.min(retryAfterMs, longestPauseMs);
    const before = this.#pauses.get(key)?.endsMs ?? Number.NEGATIVE_INFINITY;
    if (this.#pauses.size >= mostKeys && !this.#pauses.has(key)) {
      const [first] = this.#pauses.keys();
      if (first !== undefined) this.#pauses.delete(first);
    }
    this.#pauses.set(key, { endsMs: Math.max(before, endsMs), account });
    const sharedMs = this.#sharedEndMs(nowMs);
    if (sharedMs > nowMs) this.#isForAllInRow = true;
    this.#endsForAllMs = Math.max(this.#endsForAllMs, sharedMs);
  }

  /** An attempt was answered. During a pause, the attempt is from before it and does not count. */
  answered(key: string, nowMs: number): void {
    if (this.#timesInRow === 0 || this.leftMs(key, nowMs) > 0) return;
    this.#timesInRow = 0;
    this.#isForAllInRow = false;
  }

  /** Until when two keys are refused, as far as that shows what others would get. */
  #sharedEndMs(nowMs: number): number {
    const pauses = [...this.#pauses.values()].sort((one, other) => other.endsMs - one.endsMs);
    const [first, second] = pauses;
    const other = pauses.find(({ account }) => account !== first?.account);
    const ofAccountMs = Math.min(second?.endsMs ?? 0, nowMs + longestOwnPauseMs);
    return Math.max(other?.endsMs ?? 0, ofAccountMs);
  }

  #nextPauseMs(nowMs: number): number {
    const isNext = nowMs >= this.#countsAgainMs;
    if (isNext) this.#timesInRow += 1;
    const pauseMs = Math.min(longestOwnPauseMs, firstPauseMs * 2 ** (this.#timesInRow - 1));
    if (isNext) this.#countsAgainMs = nowMs + pauseMs;
    return pauseMs;
  }
}
