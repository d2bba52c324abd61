import type { MetricFamily, MetricSeries } from "./families.ts";

interface MetricOptions extends Omit<MetricFamily, "series"> {
  readonly labelNames: readonly string[];
}

/** What a series has counted. */
type Readings = Pick<MetricSeries, "value" | "counts">;

/** A metric: its series by the values of its labels, in the order of their names. */
export class Metric<Series extends Readings> {
  readonly #about: Omit<MetricFamily, "series">;
  readonly #labelNames: readonly string[];
  readonly #create: () => Series;
  readonly #root = new Branch<Series>();
  readonly #all: (readonly [labels: MetricSeries["labels"], series: Series])[] = [];

  constructor({ labelNames, ...about }: MetricOptions, create: () => Series) {
    this.#about = about;
    this.#labelNames = labelNames;
    this.#create = create;
    // A metric without labels exists from the start; others once their labels are known.
    if (labelNames.length === 0) this.of();
  }

  /** By each label: a call counts in a dozen series, and a joined key would cost far more. */
  of(...labels: readonly string[]): Series {
    let branch: Branch<Series> | undefined = this.#root;
    for (let index = 0; index < labels.length; index += 1) {
      branch = branch?.below.get(labels[index] ?? "");
    }
    return branch?.series ?? this.#begin(labels);
  }

  collect(): MetricFamily {
    const series = this.#all.map(([labels, { value, counts }]) =>
      counts === undefined ? { labels, value } : { labels, value, counts: [...counts] },
    );
    return { ...this.#about, series };
  }

  #begin(values: readonly string[]): Series {
    const series = this.#create();
    const labels = this.#labelNames.map((name, index) => [name, values[index] ?? ""]);
    this.#all.push([Object.fromEntries(labels), series]);
    let branch = this.#root;
    for (const value of values) {
      const below = branch.below.get(value) ?? new Branch<Series>();
      branch.below.set(value, below);
      branch = below;
    }
    branch.series = series;
    return series;
  }
}

/** The series whose first labels have these values. */
class Branch<Series> {
  /** That without further labels. */
  series: Series | undefined;
  readonly below = new Map<string, Branch<Series>>();
}

/** A series of a counter. */
export interface Count {
  value: number;
}

export function counter(options: Omit<MetricOptions, "type">): Metric<Count> {
  return new Metric({ ...options, type: "counter" }, () => ({ value: 0 }));
}

/** A series of a histogram: an observation costs a search and two additions. */
export class Durations {
  readonly #bounds: readonly number[];
  readonly counts: number[];
  /** The sum of all, in seconds. */
  value = 0;

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.counts = Array.from({ length: bounds.length + 1 }, () => 0);
  }

  observe(ms: number): void {
    const seconds = ms / 1_000;
    const bounds = this.#bounds;
    let bucket = 0;
    // A bound is inclusive.
    while (bucket < bounds.length && seconds > (bounds[bucket] ?? 0)) bucket += 1;
    this.counts[bucket] = (this.counts[bucket] ?? 0) + 1;
    this.value += seconds;
  }
}

/** `bounds`: of the buckets in seconds, ascending, without infinity. */
export function durationHistogram(
  options: Omit<MetricOptions, "type"> & { readonly bounds: readonly number[] },
): Metric<Durations> {
  const { bounds } = options;
  return new Metric({ ...options, type: "histogram" }, () => new Durations(bounds));
}
