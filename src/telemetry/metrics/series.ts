import type { MetricFamily, MetricSeries } from "./families.ts";

interface MetricOptions {
  readonly name: string;
  readonly help: string;
  readonly labelNames: readonly string[];
}

/** The series of a metric by label values. */
class LabelledSeries<Series> {
  readonly #labelNames: readonly string[];
  readonly #create: () => Series;
  readonly #all = new Map<string, readonly [labels: MetricSeries["labels"], series: Series]>();

  constructor(labelNames: readonly string[], create: () => Series) {
    this.#labelNames = labelNames;
    this.#create = create;
  }

  /** Label values are in the order of the names. */
  of(labelValues: readonly string[]): Series {
    const key = labelValues.join("\0");
    const known = this.#all.get(key);
    if (known !== undefined) return known[1];
    const labels = this.#labelNames.map((name, index) => [name, labelValues[index] ?? ""]);
    const series = this.#create();
    this.#all.set(key, [Object.fromEntries(labels), series]);
    return series;
  }

  map<Result>(each: (labels: MetricSeries["labels"], series: Series) => Result): Result[] {
    return Array.from(this.#all.values(), ([labels, series]) => each(labels, series));
  }
}

/** One series of a counter. What counts often keeps it, as looking it up costs far more. */
export interface Count {
  total: number;
}

/** A Prometheus counter. */
export class Counter {
  readonly #options: MetricOptions;
  readonly #series: LabelledSeries<Count>;

  constructor(options: MetricOptions) {
    this.#options = options;
    this.#series = new LabelledSeries(options.labelNames, () => ({ total: 0 }));
    // A counter without labels exists from the start; others once their labels are known.
    if (options.labelNames.length === 0) this.of([]);
  }

  /** Label values are in the order of the names. */
  of(labelValues: readonly string[]): Count {
    return this.#series.of(labelValues);
  }

  collect(): MetricFamily {
    const { name, help } = this.#options;
    const series = this.#series.map((labels, { total }) => ({ labels, value: total }));
    return { name, help, type: "counter", series };
  }
}

export interface DurationHistogramOptions extends MetricOptions {
  /** Upper bounds of the buckets in seconds, ascending, without infinity. */
  readonly bounds: readonly number[];
}

/** One series of a histogram. */
export class Durations {
  readonly #bounds: readonly number[];
  readonly counts: number[];
  sum = 0;

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.counts = Array.from({ length: bounds.length + 1 }, () => 0);
  }

  observe(seconds: number): void {
    const bounds = this.#bounds;
    let bucket = 0;
    // A bound is inclusive.
    while (bucket < bounds.length && seconds > (bounds[bucket] ?? 0)) bucket += 1;
    this.counts[bucket] = (this.counts[bucket] ?? 0) + 1;
    this.sum += seconds;
  }
}

/** A Prometheus histogram in which an observation costs a search and two additions. */
export class DurationHistogram {
  readonly #options: DurationHistogramOptions;
  readonly #series: LabelledSeries<Durations>;

  constructor(options: DurationHistogramOptions) {
    this.#options = options;
    this.#series = new LabelledSeries(options.labelNames, () => new Durations(options.bounds));
  }

  /** Label values are in the order of the names. */
  of(labelValues: readonly string[]): Durations {
    return this.#series.of(labelValues);
  }

  collect(): MetricFamily {
    const { name, help, bounds } = this.#options;
    const series = this.#series.map((labels, { counts, sum }) => ({
      labels,
      value: sum,
      counts: [...counts],
    }));
    return { name, help, type: "histogram", bounds, series };
  }
}
