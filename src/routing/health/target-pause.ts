import { ThrottlePause } from "./throttle-pause.ts";

/** Limit on keys with a pause of their own; the oldest is dropped. */
const mostKeys = 64;
/** A target that answered another key this recently is not throttled for all keys. */
const recentlyMs = 1_000;

/** Pauses of one target, for throttled keys and for all. */
export class TargetPause {
  readonly #forAll = new ThrottlePause();
  readonly #byKey = new Map<string, ThrottlePause>();
  #throttledKey: string | undefined;
  #answeredKey: string | undefined;
  #answeredAtMs = Number.NEGATIVE_INFINITY;

  leftMs(key: string, nowMs: number): number {
    const own = this.#byKey.get(key)?.leftMs(nowMs) ?? 0;
    return Math.max(own, this.#forAll.leftMs(nowMs));
  }

  /**
   * The provider refused an attempt because of a rate limit. The pause is for all keys, unless
   * those of another key are still answered. Returns whether it is for all.
   */
  throttled(key: string, nowMs: number, retryAfterMs?: number): boolean {
    const answersOther =
      this.#answeredKey !== undefined &&
      this.#answeredKey !== key &&
      nowMs - this.#answeredAtMs < recentlyMs;
    const isOfSeveral = this.#throttledKey !== undefined && this.#throttledKey !== key;
    this.#throttledKey = key;
    const isForAll = isOfSeveral || !answersOther;
    (isForAll ? this.#forAll : this.#ownOf(key)).throttled(nowMs, retryAfterMs);
    return isForAll;
  }

  /** The provider sent a Retry-After. */
  asked(nowMs: number, retryAfterMs: number): void {
    this.#forAll.asked(nowMs, retryAfterMs);
  }

  answered(key: string, nowMs: number): void {
    this.#answeredKey = key;
    this.#answeredAtMs = nowMs;
    if (this.#throttledKey === key) this.#throttledKey = undefined;
    this.#forAll.answered(nowMs);
    this.#byKey.get(key)?.answered(nowMs);
  }

  #ownOf(key: string): ThrottlePause {
    const known = this.#byKey.get(key);
    if (known !== undefined) return known;
    if (this.#byKey.size >= mostKeys) {
      const [first] = this.#byKey.keys();
      if (first !== undefined) this.#byKey.delete(first);
    }
    const own = new ThrottlePause();
    this.#byKey.set(key, own);
    return own;
  }
}
