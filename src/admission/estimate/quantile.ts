export interface QuantileOptions {
  /** Share of the observations that should lie at or below the estimate, between 0 and 1. */
  readonly quantile: number;
  /** The estimate before anything is observed. */
  readonly start: number;
  /** Bounds of the estimate, both above 0. */
  readonly minimum: number;
  readonly maximum: number;
}

// Steps are relative to the estimate (its logarithm), so one tuning serves token counts and ratios.
const largestStep = 0.5;
const smallestStep = 0.02;
const shrinkFactor = 0.9;
const growthFactor = 1.1;
// A run on one side this unlikely at the true quantile means that the estimate is far off.
const rareRunProbability = 0.01;

/**
 * Estimates a quantile of positive numbers in constant memory by stochastic approximation: up by
 * `quantile` steps when an observation is above the estimate, down by `1 - quantile` when not. It
 * rests where both balance, which is the quantile. Only the side matters, so one absurd observation
 * moves it no more than any other. The step shrinks with every crossing and grows again in long
 * one-sided runs, so it settles down and still follows a change. Deterministic.
 */
export class QuantileEstimator {
  readonly #options: QuantileOptions;
  readonly #rareRunAbove: number;
  readonly #rareRunBelow: number;
  #estimate: number;
  #step = largestStep;
  #wasAbove = false;
  #run = 0;

  constructor(options: QuantileOptions) {
    this.#options = options;
    const rare = Math.log(rareRunProbability);
    this.#rareRunAbove = Math.ceil(rare / Math.log(1 - options.quantile));
    this.#rareRunBelow = Math.ceil(rare / Math.log(options.quantile));
    this.#estimate = clamp(options.start, options);
  }

  get value(): number {
    return this.#estimate;
  }

  /** Takes one observation; NaN is ignored. */
  observe(observation: number): void {
    if (Number.isNaN(observation)) return;
    const isAbove = observation > this.#estimate;
    this.#adaptStep(isAbove);
    const { quantile } = this.#options;
    const move = isAbove ? this.#step * quantile : -this.#step * (1 - quantile);
    this.#estimate = clamp(this.#estimate * Math.exp(move), this.#options);
  }

  #adaptStep(isAbove: boolean): void {
    if (isAbove !== this.#wasAbove) {
      this.#wasAbove = isAbove;
      this.#run = 1;
      this.#step = Math.max(smallestStep, this.#step * shrinkFactor);
      return;
    }
    this.#run += 1;
    if (this.#run > (isAbove ? this.#rareRunAbove : this.#rareRunBelow)) {
      this.#step = Math.min(largestStep, this.#step * growthFactor);
    }
  }
}

function clamp(value: number, bounds: { minimum: number; maximum: number }): number {
  return Math.min(bounds.maximum, Math.max(bounds.minimum, value));
}
