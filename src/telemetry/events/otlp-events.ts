import type { Clock } from "../../domain/clock.ts";
import type { Logger } from "../log/logger.ts";
import { logFault, logRecovery } from "../log/log-outage.ts";
import { Outage } from "../log/outage.ts";
import type { Metrics } from "../metrics/metrics.ts";

export interface OtlpEventOptions {
  readonly logger: Logger;
  readonly metrics: Pick<Metrics, "counters">;
  readonly clock: Clock;
}

/** What became of the traces of calls. */
export class OtlpEvents {
  readonly #options: OtlpEventOptions;
  readonly #outage: Outage;

  constructor(options: OtlpEventOptions) {
    this.#options = options;
    this.#outage = new Outage(options.clock);
  }

  sent(calls: number): void {
    this.#count("sent", calls);
    logRecovery(this.#options.logger, this.#outage, "traces are sent again");
  }

  failed(calls: number, error: unknown): void {
    this.#count("failed", calls);
    if (!this.#outage.failed()) return;
    logFault(this.#options.logger, "traces cannot be sent and are lost", { error });
  }

  dropped(calls: number): void {
    this.#count("dropped", calls);
  }

  #count(result: "sent" | "failed" | "dropped", calls: number): void {
    this.#options.metrics.counters.add("sluice_trace_calls_total", [result], calls);
  }
}
