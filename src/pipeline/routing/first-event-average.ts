/** Samples from which the average tells something. */
const leastSamples = 10;
const newestShare = 0.1;
/** A target that is avoided because it was slow must get the chance to show that it no longer is. */
const lifetimeMs = 60_000;

/** A moving average of the time until the first event. */
export class FirstEventAverage {
  #averageMs = 0;
  #samples = 0;
  #sampledAtMs = Number.NEGATIVE_INFINITY;

  /** Undefined where too little, or nothing recent, is known. */
  valueAt(nowMs: number): number | undefined {
    this.#forget(nowMs);
    return this.#samples < leastSamples ? undefined : this.#averageMs;
  }

  answered(nowMs: number, firstEventMs: number): void {
    this.#forget(nowMs);
    this.#sampledAtMs = nowMs;
    this.#samples = Math.min(this.#samples + 1, leastSamples);
    const share = Math.max(newestShare, 1 / this.#samples);
    this.#averageMs += share * (firstEventMs - this.#averageMs);
  }

  /** A caller left before the answer began: it would have taken at least so long. */
  unanswered(nowMs: number, waitedMs: number): void {
    const averageMs = this.valueAt(nowMs);
    if (averageMs !== undefined && waitedMs > averageMs) this.answered(nowMs, waitedMs);
  }

  #forget(nowMs: number): void {
    if (nowMs - this.#sampledAtMs < lifetimeMs) return;
    this.#samples = 0;
    this.#averageMs = 0;
  }
}
