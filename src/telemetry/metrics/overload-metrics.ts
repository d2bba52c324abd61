import type { CapacityClass } from "../../domain/usage/usage.ts";
import { Counter, type CounterSeries } from "./counter.ts";

const delayName = "sluice_event_loop_delay_seconds";

/** Event loop delay and shed calls. */
export class OverloadMetrics {
  readonly #refused = new Counter({
    name: "sluice_shed_calls_total",
    help: "Calls that were refused because the process had too much to do.",
    labelNames: ["class"],
  });
  /** Created at the start, so that the first refusal is an increase and not a new series. */
  readonly #series: Readonly<Record<CapacityClass, CounterSeries>> = {
    spillover: this.#refused.series(["spillover"]),
    "on-demand": this.#refused.series(["on-demand"]),
    provisioned: this.#refused.series(["provisioned"]),
  };
  #delayMs: () => number = () => 0;

  /** Sets the source of the delay, read at each scrape. */
  measureDelay(delayMs: () => number): void {
    this.#delayMs = delayMs;
  }

  callRefused(capacityClass: CapacityClass): void {
    this.#series[capacityClass].add(1);
  }

  render(): string {
    const delay =
      `# HELP ${delayName} Longest delay of the event loop in the last five to ten seconds.\n` +
      `# TYPE ${delayName} gauge\n${delayName} ${this.#delayMs() / 1_000}\n`;
    return [delay, this.#refused.render()].join("\n");
  }
}
