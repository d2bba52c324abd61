/** Samples from which the average and the patience mean something. */
const leastSamples = 10;
/** Gains and factor of RFC 6298, section 2. */
const averageGain = 1 / 8;
const deviationGain = 1 / 4;
const deviationFactor = 4;
/** A sample counts as no more than so many times the patience. */
const mostPatiences = 2;
/** Answers that take less than this are never overdue: nobody feels the difference. */
const leastPatienceMs = 250;
/** What is overdue at a target of which little is known; a probe then tells. */
const unknownPatienceMs = 3_000;
/** A target that is avoided because it was slow must get the chance to show that it no longer is. */
const averageLifetimeMs = 60_000;

/**
 * How long a target takes to answer, as TCP estimates round trips (RFC 6298): a moving average and
 * a moving mean deviation, in milliseconds.
 */
export class AnswerTime {
  #averageMs = 0;
  #deviationMs = 0;
  #samples = 0;
  #sampledAtMs = Number.NEGATIVE_INFINITY;

  /** Undefined where too little, or nothing recent, is known. */
  averageAt(nowMs: number): number | undefined {
    const isStale = nowMs - this.#sampledAtMs >= averageLifetimeMs;
    return isStale || this.#samples < leastSamples ? undefined : this.#averageMs;
  }

  /** An attempt that has waited longer is overdue. */
  get patienceMs(): number {
    if (this.#samples < leastSamples) return unknownPatienceMs;
    return Math.max(leastPatienceMs, this.#averageMs + deviationFactor * this.#deviationMs);
  }

  answered(nowMs: number, sampleMs: number): void {
    // A few very slow answers, of one key perhaps, must not make everything look quick in future.
    const isKnown = this.#samples >= leastSamples;
    const tookMs = isKnown ? Math.min(sampleMs, mostPatiences * this.patienceMs) : sampleMs;
    this.#samples += 1;
    this.#sampledAtMs = nowMs;
    if (this.#samples === 1) {
      this.#averageMs = tookMs;
      this.#deviationMs = tookMs / 2;
      return;
    }
    const difference = tookMs - this.#averageMs;
    // The first samples weigh alike.
    const gain = Math.max(averageGain, 1 / this.#samples);
    this.#averageMs += gain * difference;
    this.#deviationMs += deviationGain * (Math.abs(difference) - this.#deviationMs);
  }

  /** The caller left before the answer: it would have taken at least this long. */
  unanswered(nowMs: number, waitedMs: number): void {
    const averageMs = this.averageAt(nowMs);
    if (averageMs !== undefined && waitedMs > averageMs) this.answered(nowMs, waitedMs);
  }
}
