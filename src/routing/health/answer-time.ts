/** Samples needed before an answer can be overdue. */
const leastSamples = 20;
/** Gains and factor of RFC 6298, section 2. */
const averageGain = 1 / 8;
const deviationGain = 1 / 4;
const deviationFactor = 4;
/** A sample counts as at most this many times the overdue time. */
const sampleCapFactor = 2;
/** Faster answers are never overdue, because nobody notices the delay. */
const leastOverdueMs = 250;

/**
 * Time to the answer of a target, estimated like TCP round trips (RFC 6298): a moving average and a
 * moving mean deviation, in milliseconds.
 */
export class AnswerTime {
  #averageMs = 0;
  #deviationMs = 0;
  #samples = 0;

  /** An attempt that has waited longer meets a silent target; Infinity with too few samples. */
  get overdueAfterMs(): number {
    if (this.#samples < leastSamples) return Infinity;
    return Math.max(leastOverdueMs, this.#averageMs + deviationFactor * this.#deviationMs);
  }

  answered(sampleMs: number): void {
    // Capped, so that a few very slow answers, perhaps of one key, do not distort the estimate.
    const tookMs = Math.min(sampleMs, sampleCapFactor * this.overdueAfterMs);
    this.#samples += 1;
    if (this.#samples === 1) {
      this.#averageMs = tookMs;
      this.#deviationMs = tookMs / 2;
      return;
    }
    const difference = tookMs - this.#averageMs;
    // The first samples all have the same weight.
    const gain = Math.max(averageGain, 1 / this.#samples);
    this.#averageMs += gain * difference;
    this.#deviationMs += deviationGain * (Math.abs(difference) - this.#deviationMs);
  }
}
