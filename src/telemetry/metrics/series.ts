import type { MetricFamily, MetricSeries } from "./families.ts";

interface MetricOptions extends Omit<MetricFamily, "series"> {
  readonly labelNames: readonly string[];
}

/** What a series has counted. */
type Readings = Pick<MetricSeries, "value" | "counts">;

/** A metric of at most five labels: its series by their values. */
export class Metric<Series extends Readings> {
  readonly #about: Omit<MetricFamily, "series">;
  readonly #labelNames: readonly string[];
  readonly #create: () => Series;
  /** By each label: a call counts in a dozen series, and a joined key would cost far more. */
  readonly #byLabels = new Map<string, ByLabel<ByLabel<ByLabel<ByLabel<Series>>>>>();
  readonly #all: (readonly [labels: MetricSeries["labels"], series: Series])[] = [];

  constructor({ labelNames, ...about }: MetricOptions, create: () => Series) {
    this.#about = about;
    this.#labelNames = labelNames;
    this.#create = create;
    // A metric without labels exists from the start; others once their labels are known.
    if (labelNames.length === 0) this.of();
  }

  /** Label values are in the order of the names. */
  of(...labels: readonly string[]): Series {
    const one = labels[0] ?? "";
    const two = labels[1] ?? "";
    const three = labels[2] ?? "";
    const four = labels[3] ?? "";
    const five = labels[4] ?? "";
    const known = this.#byLabels.get(one)?.get(two)?.get(three)?.get(four)?.get(five);
    return known ?? this.#begin([one, two, three, four, five]);
  }

  collect(): MetricFamily {
    const series = this.#all.map(([labels, { value, counts }]) =>
      counts === undefined ? { labels, value } : { labels, value, counts: [...counts] },
    );
    return { ...this.#about, series };
  }

  #begin(values: readonly [string, string, string, string, string]): Series {
    const series = this.#create();
    const labels = this.#labelNames.map((name, index) => [name, values[index] ?? ""]);
    this.#all.push([Object.fromEntries(labels), series]);
    const [one, two, three, four, five] = values;
    below(below(below(below(this.#byLabels, one), two), three), four).set(five, series);
    return series;
  }
}

type ByLabel<Value> = Map<string, Value>;

function below<Value>(all: Map<string, Map<string, Value>>, name: string): Map<string, Value> {
  const known = all.get(name) ?? new Map<string, Value>();
  all.set(name, known);
  return known;
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
