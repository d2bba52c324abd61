import type { AnswerResult } from "../../domain/idempotency-settings.ts";
import type { CapacityClass } from "../../domain/usage/usage.ts";
import { Counter } from "./counter.ts";

/** Every counter with its help text and the names of its labels. */
const table = {
  sluice_http_requests_total: ["HTTP requests answered.", "route", "status"],
  sluice_calls_total: ["Calls by how they ended.", "environment", "model", "status", "outcome"],
  sluice_tokens_total: ["Tokens of calls, as in the ledger.", "model", "direction", "source"],
  sluice_attempt_failures_total: ["Attempts at targets that failed.", "upstream", "kind"],
  sluice_malformed_events_total: [
    "Events of streamed answers that made no sense, skipped or not.",
    "upstream",
  ],
  sluice_config_reloads_total: ["Reloads by result.", "result"],
  sluice_leak_reports_total: [
    "Texts that secret scanners reported, by whether they are credentials of this gateway.",
    "label",
  ],
  sluice_ledger_write_failures_total: [
    "Batches of usage that the database refused; they are tried again.",
  ],
  sluice_ledger_dead_letters_total: [
    "Usage rows that the database will never take; they are in the dead-letter file.",
  ],
  sluice_refusals_total: ["Requests that the gateway itself refused, by the rule.", "rule"],
  sluice_repeated_refusals_total: [
    "Refusals of a key or an address within a second of the same one, answered unread.",
    "of",
  ],
  sluice_target_ejections_total: [
    "Times that a target was ejected because it kept failing: for all keys, or for one.",
    "target",
    "scope",
  ],
  sluice_target_probes_total: [
    "Requests of the gateway's own to targets in doubt, by outcome.",
    "target",
    "outcome",
  ],
  sluice_retry_decisions_total: [
    "What was done after failed attempts: where they were made again, or why not.",
    "model",
    "decision",
  ],
  sluice_guarantee_breaches_total: [
    "Calls within provisioned throughput that ended with 503 because every target failed or was " +
      "busy. Not those that the gateway refused before it looked for a target, or cut off.",
    "model",
  ],
  sluice_shed_calls_total: [
    "Calls that were refused because the process had too much to do.",
    "class",
  ],
  sluice_idempotent_answers_total: [
    "Answers to calls with an Idempotency-Key: stored, too_large to be stored with what they say, " +
      "evicted to make room for others, replayed, or joined while they came.",
    "result",
  ],
} as const satisfies Record<string, readonly [help: string, ...labelNames: string[]]>;

type CounterName = keyof typeof table;

export const capacityClasses: readonly CapacityClass[] = ["provisioned", "spillover", "on-demand"];
const results: readonly AnswerResult[] = ["stored", "too_large", "evicted", "replayed", "joined"];

/** All counters by name. */
export class Counters {
  readonly #counters: ReadonlyMap<string, Counter> = new Map(
    Object.entries(table).map(([name, [help, ...labelNames]]) => [
      name,
      new Counter({ name, help, labelNames }),
    ]),
  );

  constructor() {
    // Created at the start, so that the first count is an increase and not a new series.
    for (const each of capacityClasses) this.add("sluice_shed_calls_total", [each], 0);
    for (const result of results) this.add("sluice_idempotent_answers_total", [result], 0);
  }

  /** Label values are in the order of the names in the table. */
  add(name: CounterName, labelValues: readonly string[], amount = 1): void {
    this.#counters.get(name)?.add(labelValues, amount);
  }

  render(): string {
    return [...this.#counters.values()].map((counter) => counter.render()).join("\n");
  }
}
