import type { AnswerResult } from "../../domain/settings.ts";
import type { AttemptNote } from "../../domain/usage/call-routing.ts";
import type { UsageRecord } from "../../domain/usage/usage.ts";
import { AttemptMetrics } from "./attempt-metrics.ts";
import { CapacityMetrics } from "./capacity-metrics.ts";
import { Counters } from "./counters.ts";
import { DurationHistogram } from "./duration-histogram.ts";
import { EjectedTargets } from "./ejected-targets.ts";
import { KeyMetrics } from "./key-metrics.ts";
import { renderBuild, renderProcesses, type ProcessReading } from "./process-metrics.ts";
import { renderMetric } from "./text-format.ts";

/** Values read at each scrape; each process has only some of them. */
export interface Gauges {
  readonly openRequests?: () => number;
  readonly queuedUsageRows?: () => number;
  readonly spoolBytes?: () => number;
  /** Age of the key snapshot; it grows during an outage. */
  readonly keysAgeSeconds?: () => number;
  readonly residentBytes?: () => number;
  /** Version of the program; undefined in a thread whose page is merged into another. */
  readonly version?: string | undefined;
  readonly commit?: string | undefined;
  /** What the system reports about this process. */
  readonly processes?: () => readonly ProcessReading[];
  /** Lines dropped since the start; never decreases. */
  readonly droppedLogLines?: () => number;
}

/** All metrics. Labels hold only configured names and fixed words. */
export class Metrics {
  readonly counters = new Counters();
  readonly targets = new EjectedTargets();
  readonly capacity = new CapacityMetrics(this.counters);
  readonly keys = new KeyMetrics();
  readonly #attempts = new AttemptMetrics();
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
  readonly #gauges: Gauges;
  #loopDelayMs: () => number = () => 0;
  #limitsDegraded: (() => number) | undefined;

  constructor(gauges: Gauges) {
    this.#gauges = gauges;
  }

  /** Renders the page in the Prometheus text format, version 0.0.4. */
  render(): string {
    const { counters, targets, capacity, keys } = this;
    const times = [this.#durations, this.#firstEvents, this.#attempts];
    const parts = [counters, keys, ...times, targets, capacity];
    const processes = renderProcesses(this.#gauges.processes?.() ?? []);
    const pages = parts.map((part) => part.render());
    const { version, commit } = this.#gauges;
    const build = version === undefined ? [] : [renderBuild({ version, commit })];
    return [...pages, ...this.#renderGauges(), ...build, ...processes].join("\n");
  }

  /** Sets the source of the delay of the event loop, read at each scrape. */
  measureDelay(delayMs: () => number): void {
    this.#loopDelayMs = delayMs;
  }

  /** Sets whether this process decides alone about limits that it shares, read at each scrape. */
  followLimits(isAlone: () => boolean): void {
    this.#limitsDegraded = () => (isAlone() ? 1 : 0);
  }

  callEnded(record: UsageRecord, attempts: readonly AttemptNote[] = []): void {
    const { environment, model, status, outcome, usageSource: source } = record;
    this.counters.add("sluice_calls_total", [environment, model, String(status), outcome]);
    this.counters.add("sluice_tokens_total", [model, "input", source], record.inputTokens);
    this.counters.add("sluice_tokens_total", [model, "output", source], record.outputTokens);
    const streamed = String(record.isStreamed);
    this.#durations.series([model, streamed]).observe(record.durationMs / 1000);
    const { firstEventMs } = record;
    if (firstEventMs !== undefined) this.#firstEvents.series([model]).observe(firstEventMs / 1000);
    this.capacity.callEnded(record);
    this.keys.answered(record.keyId, status);
    for (const attempt of attempts) this.#attempts.ended(attempt);
  }

  /** Counts answers to calls with an `Idempotency-Key`. */
  readonly answered = (result: AnswerResult, amount = 1): void => {
    this.counters.add("sluice_idempotent_answers_total", [result], amount);
  };

  #renderGauges(): readonly string[] {
    const { openRequests, queuedUsageRows, spoolBytes, keysAgeSeconds, ...rest } = this.#gauges;
    const dropped = "Log lines that could not be written or were not read in time.";
    const alone = "Whether the process decides alone, because limits.store does not answer.";
    const delay = "Longest delay of the event loop in the last five to ten seconds.";
    const gauges = [
      ["sluice_event_loop_delay_seconds", delay, () => this.#loopDelayMs() / 1000],
      ["sluice_open_requests", "Requests being handled.", openRequests],
      ["sluice_ledger_queue_rows", "Usage rows not yet stored.", queuedUsageRows],
      ["sluice_ledger_spool_bytes", "Size of the spool.", spoolBytes],
      ["sluice_keys_age_seconds", "Time since the keys were last read.", keysAgeSeconds],
      ["sluice_limits_degraded", alone, this.#limitsDegraded],
      ["sluice_resident_memory_bytes", "Resident memory.", rest.residentBytes],
      ["sluice_log_lines_dropped_total", dropped, rest.droppedLogLines],
    ] as const;
    return gauges.flatMap(([name, help, read]) => {
      if (read === undefined) return [];
      const type = name.endsWith("_total") ? "counter" : "gauge";
      return [renderMetric(type, { name, help }, [["", read()]])];
    });
  }
}
