import { formatLabels } from "./text-format.ts";

/** The series of a metric by label values. */
export class LabelledSeries<Series> {
  readonly #labelNames: readonly string[];
  readonly #create: () => Series;
  readonly #byValues = new Map<string, readonly [labels: string, series: Series]>();

  constructor(labelNames: readonly string[], create: () => Series) {
    this.#labelNames = labelNames;
    this.#create = create;
  }

  /** The series of these label values, in the order of the names. */
  of(labelValues: readonly string[]): Series {
    const key = labelValues.join("\n");
    let found = this.#byValues.get(key);
    if (found === undefined) {
      found = [formatLabels(this.#labelNames, labelValues), this.#create()];
      this.#byValues.set(key, found);
    }
    return found[1];
  }

  /** The series with their formatted labels. */
  [Symbol.iterator](): Iterator<readonly [labels: string, series: Series]> {
    return this.#byValues.values();
  }
}
