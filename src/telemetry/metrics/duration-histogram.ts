import { LabelledSeries } from "./labelled-series.ts";

export interface DurationHistogramOptions {
  readonly name: string;
  readonly help: string;
  readonly labelNames: readonly string[];
  /** Upper bounds of the buckets in seconds, ascending, without infinity. */
  readonly bounds: readonly number[];
}

/** A Prometheus histogram in which an observation costs a search and two additions. */
export class DurationHistogram {
  readonly #options: DurationHistogramOptions;
  readonly #series: LabelledSeries<DurationSeries>;

  constructor(options: DurationHistogramOptions) {
    this.#options = options;
    const { labelNames, bounds } = options;
    this.#series = new LabelledSeries(labelNames, () => new DurationSeries(bounds));
  }

  /** The series of these label values, in the order of the names. */
  series(labelValues: readonly string[]): DurationSeries {
    return this.#series.of(labelValues);
  }

  /** Renders the Prometheus text format, version 0.0.4. */
  render(): string {
    const { name, help } = this.#options;
    const lines = [`# HELP ${name} ${help}`, `# TYPE ${name} histogram`];
    for (const [labels, series] of this.#series) {
      for (const { bound, count } of series.cumulated()) {
        lines.push(`${name}_bucket{le="${bound}",${labels}} ${count}`);
      }
      lines.push(`${name}_sum{${labels}} ${series.sum}`);
      lines.push(`${name}_count{${labels}} ${series.count}`);
    }
    return `${lines.join("\n")}\n`;
  }
}

/** The observations of one label set. */
export class DurationSeries {
  readonly #bounds: readonly number[];
  readonly #counts: number[];
  #sum = 0;

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    // The last one counts values above every bound.
    this.#counts = Array.from({ length: bounds.length + 1 }, () => 0);
  }

  get sum(): number {
    return this.#sum;
  }

  get count(): number {
    return this.#counts.reduce((sum, count) => sum + count, 0);
  }

  observe(seconds: number): void {
    let bucket = 0;
    // A bound is inclusive.
    while (bucket < this.#bounds.length && seconds > (this.#bounds[bucket] ?? 0)) bucket += 1;
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + 1;
    this.#sum += seconds;
  }

  /** For each bound, the number of observations up to it. */
  cumulated(): readonly { readonly bound: string; readonly count: number }[] {
    let count = 0;
    return this.#counts.map((inBucket, index) => {
      count += inBucket;
      return { bound: String(this.#bounds[index] ?? "+Inf"), count };
    });
  }
}
