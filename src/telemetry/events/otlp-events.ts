import type { Clock } from "../../domain/clock.ts";
import type { Logger } from "../log/logger.ts";
import { logFault, logRecovery, Outage } from "../log/outage.ts";
import type { Metrics } from "../metrics/metrics.ts";

export interface OtlpEventOptions {
  readonly logger: Logger;
  readonly metrics: Pick<Metrics, "counters">;
  readonly clock: Clock;
}

interface SignalWords {
  readonly counter: "sluice_trace_calls_total" | "sluice_metrics_exports_total";
  readonly lost: string;
  readonly again: string;
}

const wordsOf = {
  traces: {
    counter: "sluice_trace_calls_total",
    lost: "traces cannot be sent and are lost",
    again: "traces are sent again",
  },
  metrics: {
    counter: "sluice_metrics_exports_total",
    lost: "metrics cannot be sent",
    again: "metrics are sent again",
  },
} as const satisfies Record<string, SignalWords>;

/** What became of the calls of traces, or of the pages of metrics. */
export class OtlpEvents {
  readonly #options: OtlpEventOptions;
  readonly #words: SignalWords;
  readonly #outage: Outage;

  constructor(signal: keyof typeof wordsOf, options: OtlpEventOptions) {
    this.#options = options;
    this.#words = wordsOf[signal];
    this.#outage = new Outage(options.clock);
  }

  sent(amount: number): void {
    this.#count("sent", amount);
    logRecovery(this.#options.logger, this.#outage, this.#words.again);
  }

  failed(amount: number, error: unknown): void {
    this.#count("failed", amount);
    if (this.#outage.failed()) logFault(this.#options.logger, this.#words.lost, { error });
  }

  dropped(amount: number): void {
    this.#count("dropped", amount);
  }

  #count(result: "sent" | "failed" | "dropped", amount: number): void {
    this.#options.metrics.counters.add(this.#words.counter, [result], amount);
  }
}
