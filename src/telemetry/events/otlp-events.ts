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
export function otlpEvents(signal: keyof typeof about, options: EventOptions) {
  const { counters } = options.metrics;
  const { counter } = about[signal];
  const outage = new Outage(options, about[signal]);
  return {
    sent(amount: number): void {
      counters.of(counter, "sent").value += amount;
      outage.recovered();
    },
    failed(amount: number, error: unknown): void {
      counters.of(counter, "failed").value += amount;
      outage.failed(error);
    },
    dropped(amount: number): void {
      counters.of(counter, "dropped").value += amount;
    },
  };
}
