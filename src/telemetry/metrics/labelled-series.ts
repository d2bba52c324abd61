import { formatLabels } from "./text-format.ts";

/** Series whose first label values are the same. */
interface Branch<Series> {
  readonly byValue: Map<string, Branch<Series>>;
  series: Series | undefined;
}

/** The series of a metric by label values. */
export class LabelledSeries<Series> {
  readonly #labelNames: readonly string[];
  readonly #create: () => Series;
  /**
   * Looked up value by value: a call counts in a dozen series, and a joined key would cost more.
   */
  readonly #root: Branch<Series> = { byValue: new Map(), series: undefined };
  readonly #all: (readonly [labels: string, series: Series])[] = [];

  constructor(labelNames: readonly string[], create: () => Series) {
    this.#labelNames = labelNames;
    this.#create = create;
  }

  /** The series of these label values, in the order of the names. */
  of(labelValues: readonly string[]): Series {
    let branch = this.#root;
    for (const value of labelValues) {
      let next = branch.byValue.get(value);
      if (next === undefined) {
        next = { byValue: new Map(), series: undefined };
        branch.byValue.set(value, next);
      }
      branch = next;
    }
    branch.series ??= this.#begin(labelValues);
    return branch.series;
  }

  /** The series with their formatted labels. */
  [Symbol.iterator](): Iterator<readonly [labels: string, series: Series]> {
    return this.#all.values();
  }

  #begin(labelValues: readonly string[]): Series {
    const series = this.#create();
    this.#all.push([formatLabels(this.#labelNames, labelValues), series]);
    return series;
  }
}
