import { Counter, Gauge, Registry, type CounterConfiguration } from "prom-client";
import type { UsageRecord } from "../domain/usage.ts";
import { DurationHistogram, type DurationSeries } from "./duration-histogram.ts";

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
  readonly #durations = new DurationHistogram({
    name: "sluice_call_duration_seconds",
    help: "Time from the arrival of a call to its end.",
    labelNames: ["model", "streamed"],
    bounds: [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600],
  });
  readonly #firstEvents = new DurationHistogram({
    name: "sluice_first_event_seconds",
    help: "Time from the arrival of a call to the first event of its answer.",
    labelNames: ["model"],
    bounds: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
  });
  /** Counters with their labels bound; what they have counted goes to the library when asked for. */
  readonly #tallies: Tally[] = [];
  readonly #calledBy = new Map<string, CallTallies>();
  readonly #handledBy = new Map<string, Tally>();

  constructor(gauges: Gauges) {
    this.#gauge("sluice_open_requests", "Requests being handled.", gauges.openRequests);
    this.#gauge("sluice_ledger_queue_rows", "Usage rows not yet stored.", gauges.queuedUsageRows);
    this.#gauge("sluice_resident_memory_bytes", "Resident memory.", gauges.residentBytes);
  }

  async render(): Promise<string> {
    for (const tally of this.#tallies) tally.pour();
    const counted = await this.#registry.metrics();
    return [counted, this.#durations.render(), this.#firstEvents.render()].join("\n");
  }

  requestHandled(route: string, status: number): void {
    const key = `${route} ${status}`;
    let tally = this.#handledBy.get(key);
    if (tally === undefined) {
      tally = this.#tally(this.#requests.labels(route, String(status)));
      this.#handledBy.set(key, tally);
    }
    tally.add(1);
  }

  callEnded(record: UsageRecord): void {
    const tallies = this.#talliesOf(record);
    tallies.calls.add(1);
    tallies.input.add(record.inputTokens);
    tallies.output.add(record.outputTokens);
    tallies.duration.observe(record.durationMs / 1000);
    if (record.firstEventMs !== undefined) tallies.firstEvent.observe(record.firstEventMs / 1000);
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

  #talliesOf(record: UsageRecord): CallTallies {
    const { environment, model, status, outcome, usageSource, isStreamed } = record;
    const key = `${environment} ${model} ${status} ${outcome} ${usageSource} ${isStreamed}`;
    const known = this.#calledBy.get(key);
    if (known !== undefined) return known;
    const tallies = {
      calls: this.#tally(this.#calls.labels(environment, model, String(status), outcome)),
      input: this.#tally(this.#tokens.labels(model, "input", usageSource)),
      output: this.#tally(this.#tokens.labels(model, "output", usageSource)),
      duration: this.#durations.series([model, String(isStreamed)]),
      firstEvent: this.#firstEvents.series([model]),
    };
    this.#calledBy.set(key, tallies);
    return tallies;
  }

  #tally(counter: Counter.Internal): Tally {
    const tally = new Tally(counter);
    this.#tallies.push(tally);
    return tally;
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

interface CallTallies {
  readonly calls: Tally;
  readonly input: Tally;
  readonly output: Tally;
  readonly duration: DurationSeries;
  readonly firstEvent: DurationSeries;
}

/** Counts for a counter of the library, which hashes the labels of every increment. */
class Tally {
  readonly #counter: Counter.Internal;
  #pending = 0;

  constructor(counter: Counter.Internal) {
    this.#counter = counter;
  }

  add(amount: number): void {
    this.#pending += amount;
  }

  pour(): void {
    this.#counter.inc(this.#pending);
    this.#pending = 0;
  }
}
