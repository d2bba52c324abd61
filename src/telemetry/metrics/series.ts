import type { MetricFamily, MetricSeries } from "./families.ts";

interface MetricOptions {
  readonly name: string;
  readonly help: string;
  readonly labelNames: readonly string[];
}

/** Series whose first label values are the same. */
interface Branch<Values> {
  readonly byValue: Map<string, Branch<Values>>;
  values: Values | undefined;
}

/** The series of a metric by label values. */
class LabelledSeries<Values> {
  readonly #labelNames: readonly string[];
  readonly #create: () => Values;
  /** By value: a call counts in a dozen series, and a joined key would cost more. */
  readonly #root: Branch<Values> = { byValue: new Map(), values: undefined };
  readonly #all: (readonly [labels: MetricSeries["labels"], values: Values])[] = [];

  constructor(labelNames: readonly string[], create: () => Values) {
    this.#labelNames = labelNames;
    this.#create = create;
  }

  /** Label values are in the order of the names. */
  of(labelValues: readonly string[]): Values {
    let branch = this.#root;
    for (const value of labelValues) {
      let next = branch.byValue.get(value);
      if (next === undefined) {
        next = { byValue: new Map(), values: undefined };
        branch.byValue.set(value, next);
      }
      branch = next;
    }
    branch.values ??= this.#begin(labelValues);
    return branch.values;
  }

  map<Result>(each: (labels: MetricSeries["labels"], values: Values) => Result): Result[] {
    return this.#all.map(([labels, values]) => each(labels, values));
  }

  #begin(labelValues: readonly string[]): Values {
    const values = this.#create();
    const names = this.#labelNames.map((name, index) => [name, labelValues[index] ?? ""]);
    this.#all.push([Object.fromEntries(names), values]);
    return values;
  }
}

/** A Prometheus counter. */
export class Counter {
  readonly #options: MetricOptions;
  readonly #series: LabelledSeries<{ total: number }>;

  constructor(options: MetricOptions) {
    this.#options = options;
    this.#series = new LabelledSeries(options.labelNames, () => ({ total: 0 }));
    // A counter without labels exists from the start; others once their labels are known.
    if (options.labelNames.length === 0) this.add([], 0);
  }

  /** Label values are in the order of the names. */
  add(labelValues: readonly string[], amount: number): void {
    this.#series.of(labelValues).total += amount;
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

interface Observations {
  readonly counts: number[];
  sum: number;
}

/** A Prometheus histogram in which an observation costs a search and two additions. */
export class DurationHistogram {
  readonly #options: DurationHistogramOptions;
  readonly #series: LabelledSeries<Observations>;

  constructor(options: DurationHistogramOptions) {
    this.#options = options;
    const { labelNames, bounds } = options;
    this.#series = new LabelledSeries(labelNames, () => ({
      counts: Array.from({ length: bounds.length + 1 }, () => 0),
      sum: 0,
    }));
  }

  /** Label values are in the order of the names. */
  observe(labelValues: readonly string[], seconds: number): void {
    const { bounds } = this.#options;
    const observed = this.#series.of(labelValues);
    let bucket = 0;
    // A bound is inclusive.
    while (bucket < bounds.length && seconds > (bounds[bucket] ?? 0)) bucket += 1;
    observed.counts[bucket] = (observed.counts[bucket] ?? 0) + 1;
    observed.sum += seconds;
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
