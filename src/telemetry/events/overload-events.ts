import type { CapacityClass } from "../../domain/usage/usage.ts";
import { Outage } from "../log/outage.ts";
import type { EventOptions } from "./events.ts";

/** Calls shed under overload: each one is counted, and the log gets a line per overload. */
export class OverloadEvents {
  readonly #metrics: EventOptions["metrics"];
  readonly #outage: Outage;

  constructor(options: EventOptions) {
    this.#metrics = options.metrics;
    this.#outage = new Outage(options, {
      begins: "the process is overloaded; a share of the calls is refused with 503",
      ends: "the overload is over",
      level: "warn",
    });
  }

  measureDelay(loopDelayMs: () => number): void {
    this.#metrics.follow({ loopDelayMs });
  }

  callRefused(capacityClass: CapacityClass): void {
    this.#metrics.counters.add("sluice_shed_calls_total", [capacityClass]);
  }

  changed(isShedding: boolean): void {
    if (isShedding) this.#outage.failed(undefined);
    else this.#outage.recovered();
  }
}
