import { LabelledSeries } from "./labelled-series.ts";
import { renderMetric, type MetricName } from "./text-format.ts";

export interface CounterOptions extends MetricName {
  readonly labelNames: readonly string[];
}

/** A Prometheus counter. */
export class Counter {
  readonly #options: CounterOptions;
  readonly #series: LabelledSeries<{ total: number }>;

  constructor(options: CounterOptions) {
    this.#options = options;
    this.#series = new LabelledSeries(options.labelNames, () => ({ total: 0 }));
    // A counter without labels exists from the start; others once their labels are known.
    if (options.labelNames.length === 0) this.add([], 0);
  }

  /** Label values are in the order of the names. */
  add(labelValues: readonly string[], amount: number): void {
    this.#series.of(labelValues).total += amount;
  }

  render(): string {
    const totals = [...this.#series].map(([labels, { total }]) => [labels, total] as const);
    return renderMetric("counter", this.#options, totals);
  }
}
