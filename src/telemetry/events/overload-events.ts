import type { CapacityClass } from "../../domain/usage/usage.ts";
import { logRecovery, Outage } from "../log/outage.ts";
import type { EventOptions } from "./event-options.ts";

/** Calls shed under overload: each one is counted, and the log gets a line per overload. */
export class OverloadEvents {
  readonly #logger: EventOptions["logger"];
  readonly #metrics: EventOptions["metrics"];
  readonly #outage: Outage;

  constructor({ logger, metrics, clock }: EventOptions) {
    this.#logger = logger;
    this.#metrics = metrics;
    this.#outage = new Outage(clock);
  }

  measureDelay(delayMs: () => number): void {
    this.#metrics.measureDelay(delayMs);
  }

  callRefused(capacityClass: CapacityClass): void {
    this.#metrics.counters.add("sluice_shed_calls_total", [capacityClass]);
  }

  changed(isShedding: boolean): void {
    if (!isShedding) logRecovery(this.#logger, this.#outage, "the overload is over");
    else if (this.#outage.failed()) {
      const message = "the process is overloaded; a share of the calls is refused with 503";
      this.#logger.log("warn", message, {});
    }
  }
}
