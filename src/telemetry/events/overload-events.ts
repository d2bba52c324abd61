import type { Clock } from "../../domain/clock.ts";
import type { CapacityClass } from "../../domain/usage/usage.ts";
import { logRecovery } from "../log/log-outage.ts";
import type { Logger } from "../log/logger.ts";
import { Outage } from "../log/outage.ts";
import type { Metrics } from "../metrics/metrics.ts";

export interface OverloadEventOptions {
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly clock: Clock;
}

/** Calls shed under overload: each one is counted, and the log gets a line per overload. */
export class OverloadEvents {
  readonly #logger: Logger;
  readonly #metrics: Metrics;
  readonly #outage: Outage;

  constructor({ logger, metrics, clock }: OverloadEventOptions) {
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
