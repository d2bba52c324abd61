import { Outage } from "../log/outage.ts";
import type { EventOptions } from "./events.ts";

const about = {
  traces: {
    counter: "sluice_trace_calls_total",
    begins: "traces cannot be sent and are lost",
    ends: "traces are sent again",
  },
  metrics: {
    counter: "sluice_metrics_exports_total",
    begins: "metrics cannot be sent",
    ends: "metrics are sent again",
  },
} as const;

/** What became of the calls of traces, or of the exports of metrics. */
export class OtlpEvents {
  readonly #signal: keyof typeof about;
  readonly #metrics: EventOptions["metrics"];
  readonly #outage: Outage;

  constructor(signal: keyof typeof about, options: EventOptions) {
    this.#signal = signal;
    this.#metrics = options.metrics;
    this.#outage = new Outage(options, about[signal]);
  }

  sent(amount: number): void {
    this.#count("sent", amount);
    this.#outage.recovered();
  }

  failed(amount: number, error: unknown): void {
    this.#count("failed", amount);
    this.#outage.failed(error);
  }

  dropped(amount: number): void {
    this.#count("dropped", amount);
  }

  #count(result: "sent" | "failed" | "dropped", amount: number): void {
    this.#metrics.counters.add(about[this.#signal].counter, [result], amount);
  }
}
