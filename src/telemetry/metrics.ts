import { Counter, Gauge, Histogram, Registry, type CounterConfiguration } from "prom-client";
import type { UsageRecord } from "../domain/usage.ts";

/** What the process reads when metrics are asked for. */
export interface Gauges {
  readonly openRequests: () => number;
  readonly queuedUsageRows: () => number;
  readonly residentBytes: () => number;
}

/** Names and labels of all metrics. Labels hold configured names and fixed words only. */
export class Metrics {
  readonly #registry = new Registry();
  readonly #requests = this.#counter("sluice_http_requests_total", "HTTP requests answered.", [
    "route",
    "status",
  ]);
  readonly #calls = this.#counter("sluice_calls_total", "Calls by how they ended.", [
    "environment",
    "model",
    "status",
    "outcome",
  ]);
  readonly #tokens = this.#counter("sluice_tokens_total", "Tokens of calls, as in the ledger.", [
    "model",
    "direction",
    "source",
  ]);
  readonly #attemptFailures = this.#counter(
    "sluice_attempt_failures_total",
    "Attempts at targets that failed.",
    ["upstream", "kind"],
  );
  readonly #configReloads = this.#counter("sluice_config_reloads_total", "Reloads by result.", [
    "result",
  ]);
  readonly #ledgerFailures = this.#counter(
    "sluice_ledger_write_failures_total",
    "Batches of usage that the database refused; they are tried again.",
    [],
  );
  readonly #durations = new Histogram({
    name: "sluice_call_duration_seconds",
    help: "Time from the arrival of a call to its end.",
    labelNames: ["model", "streamed"],
    buckets: [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600],
    registers: [this.#registry],
  });
  readonly #firstEvents = new Histogram({
    name: "sluice_first_event_seconds",
    help: "Time from the arrival of a call to the first event of its answer.",
    labelNames: ["model"],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
    registers: [this.#registry],
  });
  /** Metrics with their labels bound, so that a call does not pay for hashing them. */
  readonly #bound = new Map<string, BoundCall>();
  readonly #boundRequests = new Map<string, Counter.Internal>();

  constructor(gauges: Gauges) {
    this.#gauge("sluice_open_requests", "Requests being handled.", gauges.openRequests);
    this.#gauge("sluice_ledger_queue_rows", "Usage rows not yet stored.", gauges.queuedUsageRows);
    this.#gauge("sluice_resident_memory_bytes", "Resident memory.", gauges.residentBytes);
  }

  render(): Promise<string> {
    return this.#registry.metrics();
  }

  requestHandled(route: string, status: number): void {
    const key = `${route} ${status}`;
    let counter = this.#boundRequests.get(key);
    if (counter === undefined) {
      counter = this.#requests.labels(route, String(status));
      this.#boundRequests.set(key, counter);
    }
    counter.inc();
  }

  callEnded(record: UsageRecord): void {
    const bound = this.#boundCall(record);
    bound.calls.inc();
    bound.input.inc(record.inputTokens);
    bound.output.inc(record.outputTokens);
    bound.duration.observe(record.durationMs / 1000);
    if (record.firstEventMs !== undefined) bound.firstEvent.observe(record.firstEventMs / 1000);
  }

  attemptFailed(upstream: string, kind: string): void {
    this.#attemptFailures.labels(upstream, kind).inc();
  }

  configReloaded(result: "accepted" | "refused"): void {
    this.#configReloads.labels(result).inc();
  }

  ledgerWriteFailed(): void {
    this.#ledgerFailures.inc();
  }

  #boundCall(record: UsageRecord): BoundCall {
    const { environment, model, status, outcome, usageSource, isStreamed } = record;
    const key = `${environment} ${model} ${status} ${outcome} ${usageSource} ${isStreamed}`;
    const known = this.#bound.get(key);
    if (known !== undefined) return known;
    const bound = {
      calls: this.#calls.labels(environment, model, String(status), outcome),
      input: this.#tokens.labels(model, "input", usageSource),
      output: this.#tokens.labels(model, "output", usageSource),
      duration: this.#durations.labels(model, String(isStreamed)),
      firstEvent: this.#firstEvents.labels(model),
    };
    this.#bound.set(key, bound);
    return bound;
  }

  #counter(name: string, help: string, labelNames: string[]): Counter {
    const configuration: CounterConfiguration<string> = { name, help, labelNames };
    return new Counter({ ...configuration, registers: [this.#registry] });
  }

  #gauge(name: string, help: string, read: () => number): void {
    const registers = [this.#registry];
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(read());
      },
    });
  }
}

interface BoundCall {
  readonly calls: Counter.Internal;
  readonly input: Counter.Internal;
  readonly output: Counter.Internal;
  readonly duration: Histogram.Internal<string>;
  readonly firstEvent: Histogram.Internal<string>;
}
