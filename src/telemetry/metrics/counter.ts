import { formatLabels } from "./labels.ts";

export interface CounterOptions {
  readonly name: string;
  readonly help: string;
  readonly labelNames: readonly string[];
}

/** A Prometheus counter that costs a call one addition: callers keep its series. */
export class Counter {
  readonly #options: CounterOptions;
  readonly #series = new Map<string, CounterSeries>();

  constructor(options: CounterOptions) {
    this.#options = options;
    // A counter without labels exists from the start; others once their labels are known.
    if (options.labelNames.length === 0) this.series([]);
  }

  /** The series of these label values, in the order of the names. Keep it: the lookup is slow. */
  series(labelValues: readonly string[]): CounterSeries {
    const labels = formatLabels(this.#options.labelNames, labelValues);
    let series = this.#series.get(labels);
    if (series === undefined) {
      series = new CounterSeries();
      this.#series.set(labels, series);
    }
    return series;
  }

  /** Renders the Prometheus text format, version 0.0.4. */
  render(): string {
    const { name, help } = this.#options;
    const lines = [`# HELP ${name} ${help}`, `# TYPE ${name} counter`];
    for (const [labels, { total }] of this.#series) {
      lines.push(`${name}${labels === "" ? "" : `{${labels}}`} ${total}`);
    }
    return `${lines.join("\n")}\n`;
  }
}

/** The count of one label set. */
export class CounterSeries {
  #total = 0;

  get total(): number {
    return this.#total;
  }

  add(amount: number): void {
    this.#total += amount;
  }
}
