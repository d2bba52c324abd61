import type { AnswerResult } from "../../domain/settings.ts";
import type { PoolLoad, PoolName } from "../../domain/limits/capacity.ts";
import type { AffinityResult, AttemptNote } from "../../domain/usage/call-routing.ts";
import type { CapacityClass, UsageRecord } from "../../domain/usage/usage.ts";
import { capacityClasses, Counters } from "./counters.ts";
import type { MetricFamily, MetricSeries } from "./families.ts";
import { processFamilies } from "./process-readings.ts";
import { durationHistogram } from "./series.ts";

/** Gauges of one value, with their help text. */
const gaugeTable = [
  [
    "sluice_event_loop_delay_seconds",
    "Longest delay of the event loop in the last five to ten seconds.",
  ],
  ["sluice_open_requests", "Requests being handled."],
  ["sluice_ledger_queue_rows", "Usage rows not yet stored."],
  ["sluice_ledger_spool_bytes", "Size of the spool."],
  ["sluice_keys_age_seconds", "Time since the keys were last read."],
  [
    "sluice_limits_degraded",
    "Whether the process decides alone, because limits.store does not answer.",
  ],
  [
    "sluice_log_lines_dropped_total",
    "Log lines that could not be written or were not read in time.",
  ],
] as const;

/** Values read at each scrape; each thread has only some of them. Undefined: nobody knows now. */
type Readers = { readonly [Name in (typeof gaugeTable)[number][0]]?: () => number | undefined };

export interface Gauges extends Readers {
  /** Undefined in a thread that says nothing of its process. */
  readonly program?: { readonly version: string; readonly commit: string | undefined } | undefined;
  readonly pools?: () => readonly PoolLoad[];
}

/** A wait for a place at a pool or an upstream. */
export interface EndedWait {
  readonly pool: PoolName;
  readonly capacityClass: CapacityClass;
  readonly outcome: string;
  readonly waitedMs: number;
}

/** Keys with series of their own; requests of all others are counted together. */
const mostKeys = 1_000;

const otherKeys = "other";

/** All metrics. Labels hold only configured names and fixed words. */
export class Metrics {
  readonly counters = new Counters();
  readonly #requests = this.counters.get("sluice_http_requests_total");
  readonly #calls = this.counters.get("sluice_calls_total");
  readonly #tokens = this.counters.get("sluice_tokens_total");
  readonly #costs = this.counters.get("sluice_cost_usd_total");
  readonly #unpriced = this.counters.get("sluice_unpriced_calls_total");
  readonly #keyRequests = this.counters.get("sluice_key_requests_total");
  readonly #attempts = this.counters.get("sluice_attempts_total");
  readonly #breaches = this.counters.get("sluice_guarantee_breaches_total");
  readonly #durations = durationHistogram({
    name: "sluice_call_duration_seconds",
    help: "Time from the arrival of a call to its end.",
    labelNames: ["model", "streamed"],
    bounds: [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600],
  });
  readonly #firstEvents = durationHistogram({
    name: "sluice_first_event_seconds",
    help: "Time from the arrival of a call to the first event of its answer.",
    labelNames: ["model"],
    bounds: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
  });
  readonly #attemptDurations = durationHistogram({
    name: "sluice_attempt_duration_seconds",
    help: "Duration of attempts, to the end of the answer or the failure.",
    labelNames: ["target", "result"],
    bounds: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300],
  });
  readonly #waits = durationHistogram({
    name: "sluice_queue_wait_seconds",
    help: "Time that calls waited for a place at a pool or upstream, by how the wait ended.",
    labelNames: ["pool", "class", "outcome"],
    bounds: [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60],
  });
  #gauges: Gauges;
  readonly #keys = new Set<string>();
  /** Whether each configured target is out. */
  #targets = new Map<string, boolean>();

  constructor(gauges: Gauges) {
    this.#gauges = gauges;
  }

  collect(): readonly MetricFamily[] {
    const { program } = this.#gauges;
    const histograms = [this.#durations, this.#firstEvents, this.#attemptDurations, this.#waits];
    return [
      ...this.counters.collect(),
      ...histograms.map((histogram) => histogram.collect()),
      ...this.#collectGauges(),
      ...(program === undefined ? [] : [buildFamily(program), ...processFamilies()]),
    ];
  }

  /** Adds what is known only after the start. */
  follow(gauges: Gauges): void {
    this.#gauges = { ...this.#gauges, ...gauges };
  }

  /** Sets the targets of the running configuration; others are not shown. */
  targetsConfigured(targets: Iterable<string>): void {
    const before = this.#targets;
    this.#targets = new Map([...targets].map((target) => [target, before.get(target) ?? false]));
  }

  /** A target is out for all keys, or works again. */
  targetOut(target: string, isOut: boolean): void {
    if (this.#targets.has(target)) this.#targets.set(target, isOut);
  }

  waited({ pool, capacityClass, outcome, waitedMs }: EndedWait): void {
    this.#waits.of(labelOf(pool), capacityClass, outcome).observe(waitedMs);
  }

  callEnded(record: UsageRecord, attempts: readonly AttemptNote[] = []): void {
    const { environment, model, dialect, status, outcome } = record;
    const { usageSource: source, firstEventMs, costNano } = record;
    this.#calls.of(environment, model, dialect, String(status), outcome).value += 1;
    this.#tokens.of(model, "input", source).value += record.inputTokens;
    this.#tokens.of(model, "output", source).value += record.outputTokens;
    if (costNano === undefined) this.#unpriced.of(model).value += 1;
    else if (costNano > 0) this.#costs.of(model).value += costNano / 1e9;
    this.#durations.of(model, String(record.isStreamed)).observe(record.durationMs);
    if (firstEventMs !== undefined) this.#firstEvents.of(model).observe(firstEventMs);
    if (breaksGuarantee(record)) this.#breaches.of(model).value += 1;
    this.keyAnswered(record.keyId, status);
    for (const attempt of attempts) this.#attemptEnded(attempt);
  }

  /** The share of cached tokens of calls with and without a session. */
  callRouted({ model, inputTokens, cachedInputTokens }: UsageRecord, result: AffinityResult): void {
    this.counters.of("sluice_affinity_calls_total", model, result).value += 1;
    this.counters.of("sluice_affinity_input_tokens_total", model, result).value += inputTokens;
    const cached = this.counters.of("sluice_affinity_cached_tokens_total", model, result);
    cached.value += cachedInputTokens;
  }

  requestAnswered(route: string, status: number): void {
    this.#requests.of(route, String(status)).value += 1;
  }

  /** The number of series is bounded, regardless of the number of keys. */
  keyAnswered(keyId: string, status: number): void {
    let key = keyId;
    if (!this.#keys.has(keyId)) {
      if (this.#keys.size < mostKeys) this.#keys.add(keyId);
      else key = otherKeys;
    }
    this.#keyRequests.of(key, answerOf(status)).value += 1;
  }

  /** Counts answers to calls with an `Idempotency-Key`. */
  readonly answered = (result: AnswerResult, amount = 1): void => {
    this.counters.of("sluice_idempotent_answers_total", result).value += amount;
  };

  #attemptEnded({ target, outcome, durationMs }: AttemptNote): void {
    this.#attempts.of(target, outcome).value += 1;
    const isEnd = outcome === "answered" || outcome === "given-up";
    this.#attemptDurations.of(target, isEnd ? outcome : "failed").observe(durationMs);
  }

  #collectGauges(): readonly MetricFamily[] {
    const targets = [...this.#targets].map(([target, isOut]) => ({
      labels: { target },
      value: isOut ? 1 : 0,
    }));
    const help = "Whether a target is out for all keys: 1 until it works again.";
    return [
      gaugeFamily("sluice_target_out", help, targets),
      this.#poolFamily("in_flight", "inFlight", "Calls that hold a place of a pool or upstream."),
      this.#poolFamily("queued", "queued", "Calls that wait for a place of a pool or upstream."),
      ...gaugeTable.flatMap(([name, text]) => {
        const value = this.#gauges[name]?.();
        return value === undefined ? [] : [gaugeFamily(name, text, [{ labels: {}, value }])];
      }),
    ];
  }

  #poolFamily(name: string, field: "inFlight" | "queued", help: string): MetricFamily {
    const { pools = () => [] } = this.#gauges;
    const series = pools().flatMap((pool) =>
      capacityClasses.map((each) => ({
        labels: { pool: labelOf(pool), class: each },
        value: pool[field][each],
      })),
    );
    return gaugeFamily(`sluice_pool_${name}`, help, series);
  }
}

/** A count whose name says so is read like a gauge. */
function gaugeFamily(name: string, help: string, series: readonly MetricSeries[]): MetricFamily {
  return { name, help, type: name.endsWith("_total") ? "counter" : "gauge", series };
}

function buildFamily({
  version,
  commit = "unknown",
}: {
  readonly version: string;
  readonly commit: string | undefined;
}): MetricFamily {
  const labels = { version, commit, runtime: `bun-${Bun.version}` };
  const help = "1 for the version of the program that runs.";
  return gaugeFamily("sluice_build_info", help, [{ labels, value: 1 }]);
}

/** A call without routing was refused before a target was chosen. */
function breaksGuarantee({ capacityClass, status, routing }: UsageRecord): boolean {
  if (capacityClass !== "provisioned" || status !== 503 || routing === undefined) return false;
  // A given-up attempt did not fail: the process shut down, or an image could not be read.
  return routing.attempts.at(-1)?.outcome !== "given-up";
}

/** Who caused the answer; five values. */
function answerOf(status: number): string {
  if (status < 400) return "ok";
  if (status === 429) return "limited";
  if (status === 499) return "left";
  return status < 500 ? "refused" : "failed";
}

function labelOf({ kind, name }: PoolName): string {
  return `${kind}:${name}`;
}
