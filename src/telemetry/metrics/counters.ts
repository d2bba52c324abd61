import { refusalRules } from "../../domain/errors/refusal.ts";
import type { AnswerResult } from "../../domain/settings.ts";
import type { CapacityClass } from "../../domain/usage/usage.ts";
import type { MetricFamily } from "./families.ts";
import { type Count, counter, type Metric } from "./series.ts";

/** Every counter with its help text and the names of its labels. */
const table = {
  sluice_http_requests_total: ["HTTP requests answered.", "route", "status"],
  sluice_calls_total: ["Calls by outcome.", "environment", "model", "dialect", "status", "outcome"],
  sluice_tokens_total: ["Tokens of calls, as in the ledger.", "model", "direction", "source"],
  sluice_cost_usd_total: ["Cost of calls that have a price, as in the ledger.", "model"],
  sluice_unpriced_calls_total: [
    "Calls without a cost, because something that they used has no price.",
    "model",
  ],
  sluice_key_requests_total: [
    "Requests by key and answer. The first 1000 keys of each process have their own " +
      "series; all others are `other`.",
    "key",
    "answer",
  ],
  sluice_attempts_total: [
    "Attempts at targets: answered, given-up, or the cause of the failure.",
    "target",
    "outcome",
  ],
  sluice_attempt_failures_total: ["Failed attempts at targets.", "upstream", "kind"],
  sluice_malformed_events_total: [
    "Malformed events in streamed answers, skipped or not.",
    "upstream",
  ],
  sluice_upstream_troubles_total: [
    "Problems of an upstream outside calls, such as an unknown reason for the end of answers.",
    "upstream",
  ],
  sluice_end_users_beyond_total: [
    "Calls of end users without limits apart, because their account has 100,000 others at the time.",
  ],
  sluice_labels_dropped_total: [
    "Names of end users, and values of tags, that were too long or had no printable text; their " +
      "calls went on without.",
    "of",
  ],
  sluice_config_reloads_total: ["Reloads of the configuration, by result.", "result"],
  sluice_ledger_write_failures_total: [
    "Batches of usage that the database rejected; they are retried.",
  ],
  sluice_ledger_dead_letters_total: [
    "Usage rows that the database rejects permanently; they are in the dead-letter file.",
  ],
  sluice_ledger_events_sent_total: ["Events of the ledger that the receiver has accepted."],
  sluice_ledger_event_failures_total: [
    "Requests with events of the ledger that failed; they are repeated.",
  ],
  sluice_refusals_total: ["Requests that got an error for which the gateway has a rule.", "rule"],
  sluice_audited_refusals_total: [
    "Requests that limits of a plan in audit would have refused.",
    "plan",
    "rule",
  ],
  sluice_limits_lost_total: [
    "Losses of what limits.store had counted for one account, or values there that were unreadable.",
  ],
  sluice_repeated_refusals_total: [
    "Repeated refusals of a key or address within a second, answered without reading.",
    "of",
  ],
  sluice_target_outs_total: [
    "Times that targets went out as they kept failing, for all keys or for one.",
    "target",
    "scope",
  ],
  sluice_target_probes_total: ["Probes of targets that were out, by outcome.", "target", "outcome"],
  sluice_retry_decisions_total: [
    "Decisions after failed attempts: where the call was retried, or why not.",
    "model",
    "decision",
  ],
  sluice_affinity_calls_total: [
    "Answered calls with a choice among targets of one priority: kept at the target of their session, " +
      "or why not. none: they were of no session.",
    "model",
    "result",
  ],
  sluice_affinity_input_tokens_total: ["Input tokens of those calls.", "model", "result"],
  sluice_affinity_cached_tokens_total: [
    "Input tokens of those calls that were read from a cache.",
    "model",
    "result",
  ],
  sluice_guarantee_breaches_total: [
    "Calls within provisioned throughput that ended with 503 because every target failed or was " +
      "busy. Excludes calls that the gateway refused before looking for a target, or ended.",
    "model",
  ],
  sluice_shed_calls_total: ["Calls refused because the process was overloaded.", "class"],
  sluice_idempotent_answers_total: [
    "Answers to calls with an Idempotency-Key: stored, too_large to store, " +
      "evicted to make room for others, or replayed.",
    "result",
  ],
  sluice_trace_calls_total: [
    "Calls kept for traces: sent, failed to be sent, or dropped because too many waited.",
    "result",
  ],
  sluice_metrics_exports_total: ["Times the metrics were sent, or failed to be sent.", "result"],
} as const satisfies Record<string, readonly [help: string, ...labelNames: string[]]>;

type CounterName = keyof typeof table;

export const capacityClasses: readonly CapacityClass[] = ["provisioned", "spillover", "on-demand"];
const results: readonly AnswerResult[] = ["stored", "too_large", "evicted", "replayed"];

/**
 * Counters with one label whose values are all known. Their series exist from the start, so that
 * the first count is an increase for Prometheus, and not only a new series.
 */
const knownValues: readonly (readonly [CounterName, readonly string[]])[] = [
  ["sluice_config_reloads_total", ["accepted", "refused"]],
  ["sluice_idempotent_answers_total", results],
  ["sluice_refusals_total", refusalRules],
  ["sluice_repeated_refusals_total", ["key", "address"]],
  ["sluice_labels_dropped_total", ["end_user", "tag"]],
  ["sluice_shed_calls_total", capacityClasses],
  ["sluice_trace_calls_total", ["sent", "failed", "dropped"]],
  ["sluice_metrics_exports_total", ["sent", "failed"]],
];

/** All counters by name. */
export class Counters {
  readonly #counters: ReadonlyMap<string, Metric<Count>> = new Map(
    Object.entries(table).map(([name, [help, ...labelNames]]) => [
      name,
      counter({ name, help, labelNames }),
    ]),
  );

  constructor() {
    for (const [name, values] of knownValues) {
      for (const value of values) this.of(name, value);
    }
  }

  /** What a call counts in is looked up once. */
  get(name: CounterName): Metric<Count> {
    const found = this.#counters.get(name);
    if (found === undefined) throw new RangeError(`there is no counter ${name}`);
    return found;
  }

  /** A series, which starts at 0. Labels are in the order of the names in the table. */
  of(name: CounterName, ...labels: readonly string[]): Count {
    return this.get(name).of(...labels);
  }

  collect(): readonly MetricFamily[] {
    return Array.from(this.#counters.values(), (each) => each.collect());
  }
}
