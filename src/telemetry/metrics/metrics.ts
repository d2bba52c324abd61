import type { RefusalRule } from "../../domain/errors/refusal.ts";
import type { UsageRecord } from "../../domain/usage/usage.ts";
import { CapacityMetrics } from "./capacity-metrics.ts";
import { Counter, type CounterSeries } from "./counter.ts";
import { DurationHistogram, type DurationSeries } from "./duration-histogram.ts";
import { IdempotencyMetrics } from "./idempotency-metrics.ts";
import { OverloadMetrics } from "./overload-metrics.ts";
import { RoutingMetrics } from "./routing-metrics.ts";

/** Values read at each scrape, of what the process has. */
export interface Gauges {
  readonly openRequests?: () => number;
  readonly queuedUsageRows?: () => number;
  readonly spoolBytes?: () => number;
  /** Age of the key snapshot; it grows during an outage. */
  readonly keysAgeSeconds?: () => number;
  readonly residentBytes?: () => number;
  /** Since the start; never decreases. */
  readonly droppedLogLines?: () => number;
}

/** All metrics. Labels hold only configured names and fixed words. */
export class Metrics {
  readonly routing = new RoutingMetrics();
  readonly capacity = new CapacityMetrics();
  readonly overload = new OverloadMetrics();
  readonly idempotency = new IdempotencyMetrics();
  readonly #requests = new Counter({
    name: "sluice_http_requests_total",
    help: "HTTP requests answered.",
    labelNames: ["route", "status"],
  });
  readonly #calls = new Counter({
    name: "sluice_calls_total",
    help: "Calls by how they ended.",
    labelNames: ["environment", "model", "status", "outcome"],
  });
  readonly #tokens = new Counter({
    name: "sluice_tokens_total",
    help: "Tokens of calls, as in the ledger.",
    labelNames: ["model", "direction", "source"],
  });
  readonly #attemptFailures = new Counter({
    name: "sluice_attempt_failures_total",
    help: "Attempts at targets that failed.",
    labelNames: ["upstream", "kind"],
  });
  readonly #malformedEvents = new Counter({
    name: "sluice_malformed_events_total",
    help: "Events of streamed answers that made no sense, skipped or not.",
    labelNames: ["upstream"],
  });
  readonly #configReloads = new Counter({
    name: "sluice_config_reloads_total",
    help: "Reloads by result.",
    labelNames: ["result"],
  });
  readonly #leakReports = new Counter({
    name: "sluice_leak_reports_total",
    help: "Texts that secret scanners reported, by whether they are credentials of this gateway.",
    labelNames: ["label"],
  });
  readonly #ledgerFailures = new Counter({
    name: "sluice_ledger_write_failures_total",
    help: "Batches of usage that the database refused; they are tried again.",
    labelNames: [],
  });
  readonly #deadLetters = new Counter({
    name: "sluice_ledger_dead_letters_total",
    help: "Usage rows that the database will never take; they are in the dead-letter file.",
    labelNames: [],
  });
  readonly #refusals = new Counter({
    name: "sluice_refusals_total",
    help: "Requests that the gateway itself refused, by the rule.",
    labelNames: ["rule"],
  });
  readonly #repeated = new Counter({
    name: "sluice_repeated_refusals_total",
    help: "Refusals of a key or an address within a second of the same one, answered unread.",
    labelNames: ["of"],
  });
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
  /** Series by what they count, so that a call does not format labels. */
  readonly #seriesOfCalls = new Map<string, CallSeries>();
  readonly #seriesOfRequests = new Map<string, CounterSeries>();
  readonly #seriesOfRefusals = new Map<RefusalRule, CounterSeries>();
  readonly #gauges: Gauges;

  constructor(gauges: Gauges) {
    this.#gauges = gauges;
  }

  /** Renders the page in the Prometheus text format, version 0.0.4. */
  render(): string {
    const series = [
      this.#requests,
      this.#calls,
      this.#tokens,
      this.#attemptFailures,
      this.#malformedEvents,
      this.#configReloads,
      this.#leakReports,
      this.#ledgerFailures,
      this.#deadLetters,
      this.#refusals,
      this.#repeated,
      this.#durations,
      this.#firstEvents,
      this.routing,
      this.capacity,
      this.overload,
      this.idempotency,
    ];
    const read = gaugeRows(this.#gauges).flatMap(renderGauge);
    return [...series.map((each) => each.render()), ...read].join("\n");
  }

  requestHandled(route: string, status: number): void {
    const key = `${route} ${status}`;
    let series = this.#seriesOfRequests.get(key);
    if (series === undefined) {
      series = this.#requests.series([route, String(status)]);
      this.#seriesOfRequests.set(key, series);
    }
    series.add(1);
  }

  callEnded(record: UsageRecord): void {
    const series = this.#callSeries(record);
    series.calls.add(1);
    series.input.add(record.inputTokens);
    series.output.add(record.outputTokens);
    series.duration.observe(record.durationMs / 1000);
    this.capacity.callEnded(record);
    if (record.firstEventMs !== undefined) series.firstEvent.observe(record.firstEventMs / 1000);
  }

  attemptFailed(upstream: string, kind: string): void {
    this.#attemptFailures.series([upstream, kind]).add(1);
  }

  malformedEvents(upstream: string, count: number): void {
    this.#malformedEvents.series([upstream]).add(count);
  }

  configReloaded(result: "accepted" | "refused"): void {
    this.#configReloads.series([result]).add(1);
  }

  leaksReported(label: "true_positive" | "false_positive", count: number): void {
    if (count > 0) this.#leakReports.series([label]).add(count);
  }

  ledgerWriteFailed(): void {
    this.#ledgerFailures.series([]).add(1);
  }

  deadLettered(): void {
    this.#deadLetters.series([]).add(1);
  }

  refused(rule: RefusalRule): void {
    let series = this.#seriesOfRefusals.get(rule);
    if (series === undefined) {
      series = this.#refusals.series([rule]);
      this.#seriesOfRefusals.set(rule, series);
    }
    series.add(1);
  }

  repeated(of: "key" | "address"): void {
    this.#repeated.series([of]).add(1);
  }

  #callSeries(record: UsageRecord): CallSeries {
    const { environment, model, status, outcome, usageSource, isStreamed } = record;
    const key = `${environment} ${model} ${status} ${outcome} ${usageSource} ${isStreamed}`;
    const known = this.#seriesOfCalls.get(key);
    if (known !== undefined) return known;
    const series = {
      calls: this.#calls.series([environment, model, String(status), outcome]),
      input: this.#tokens.series([model, "input", usageSource]),
      output: this.#tokens.series([model, "output", usageSource]),
      duration: this.#durations.series([model, String(isStreamed)]),
      firstEvent: this.#firstEvents.series([model]),
    };
    this.#seriesOfCalls.set(key, series);
    return series;
  }
}

interface CallSeries {
  readonly calls: CounterSeries;
  readonly input: CounterSeries;
  readonly output: CounterSeries;
  readonly duration: DurationSeries;
  readonly firstEvent: DurationSeries;
}

interface GaugeRow {
  readonly name: string;
  readonly help: string;
  /** Default: a gauge. */
  readonly type?: "counter" | "gauge";
  readonly read: (() => number) | undefined;
}

function gaugeRows(gauges: Gauges): readonly GaugeRow[] {
  return [
    {
      name: "sluice_open_requests",
      help: "Requests being handled.",
      read: gauges.openRequests,
    },
    {
      name: "sluice_ledger_queue_rows",
      help: "Usage rows not yet stored.",
      read: gauges.queuedUsageRows,
    },
    {
      name: "sluice_ledger_spool_bytes",
      help: "Size of the spool.",
      read: gauges.spoolBytes,
    },
    {
      name: "sluice_keys_age_seconds",
      help: "Time since the keys were last read.",
      read: gauges.keysAgeSeconds,
    },
    {
      name: "sluice_resident_memory_bytes",
      help: "Resident memory.",
      read: gauges.residentBytes,
    },
    {
      name: "sluice_log_lines_dropped_total",
      help: "Lines of the log that could not be written, or that nobody read in time.",
      type: "counter",
      read: gauges.droppedLogLines,
    },
  ];
}

function renderGauge({ name, help, type = "gauge", read }: GaugeRow): readonly string[] {
  if (read === undefined) return [];
  return [`# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${name} ${read()}\n`];
}
