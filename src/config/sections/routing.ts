import { z } from "zod";
import type { Pool } from "../../domain/limits/capacity.ts";
import type { OverloadSettings, RoutingSettings } from "../../domain/settings.ts";
import {
  duration,
  flag,
  identifier,
  requiredWholeNumber,
  wholeNumber,
} from "../../settings/values.ts";

const outSchema = z
  .strictObject({
    failures: wholeNumber(5, [1, 1000]).describe("Consecutive failures that take a target out."),
    error_percent: wholeNumber(40, [1, 100]).describe(
      "Percentage of failures in ten seconds that takes a target out.",
    ),
    least_attempts: wholeNumber(20, [1, 1_000_000]).describe(
      "Minimum attempts in ten seconds for `error_percent` to apply.",
    ),
    first: duration("1s", ["100ms", "1h"]).describe(
      "How long a target is out at first; each time twice as long.",
    ),
    longest: duration("5s", ["100ms", "24h"]).describe("Longest time that a target is out."),
  })
  .refine((out) => out.longest >= out.first, {
    path: ["longest"],
    error: "must not be shorter than routing.out.first",
  })
  .prefault({})
  .describe(
    "When a failing target is out: it gets no calls while another target, or a fallback, " +
      "can serve.",
  )
  .transform((out) => ({
    failures: out.failures,
    errorPercent: out.error_percent,
    leastAttempts: out.least_attempts,
    firstMs: out.first,
    longestMs: out.longest,
  }));

export const routingSchema = z
  .strictObject({
    attempts: wholeNumber(3, [1, 10]).describe(
      "Maximum attempts of a call; each target may be tried once in any case.",
    ),
    retry_budget: wholeNumber(20, [0, 100]).describe(
      "Retries at a failing target, in percent of its other attempts in ten seconds; hedges, " +
        "in percent of a model's calls.",
    ),
    retry_floor: wholeNumber(10, [0, 1000]).describe(
      "Retries per target, and hedges per model, always allowed in ten seconds.",
    ),
    first_backoff: duration("1s", ["1ms", "1m"]).describe(
      "Longest wait before a second attempt at the same target; it doubles each time.",
    ),
    longest_backoff: duration("5s", ["1ms", "5m"]).describe(
      "Longest `retry-after` that is honoured, and longest back-off.",
    ),
    target_header: flag(true).describe(
      "Answers name the upstream and the model that served, in `x-sluice-target`.",
    ),
    cost_header: flag(false).describe(
      "Answers say what the call costs, in `x-sluice-cost-usd` or, in streams, `cost_usd` of " +
        "the usage.",
    ),
    session_affinity: flag(true).describe(
      "Calls of one session prefer one of the targets of a priority, which then has their " +
        "prompt cached.",
    ),
    queue_limit: wholeNumber(1000, [0, 1_000_000]).describe(
      "Maximum calls of one class waiting for one pool or upstream.",
    ),
    out: outSchema,
  })
  .prefault({})
  .describe("Retries and failing targets.")
  .transform((routing): RoutingSettings => ({
    attempts: routing.attempts,
    retryBudgetPercent: routing.retry_budget,
    retryFloor: routing.retry_floor,
    firstBackoffMs: routing.first_backoff,
    longestBackoffMs: routing.longest_backoff,
    showsTarget: routing.target_header,
    showsCost: routing.cost_header,
    hasSessionAffinity: routing.session_affinity,
    queueLimit: routing.queue_limit,
    out: routing.out,
  }));

export const overloadSchema = z
  .strictObject({
    loop_delay: duration("100ms", ["5ms", "10s"]).describe(
      "Event loop delay above which calls are refused.",
    ),
    max_calls: wholeNumber(20_000, [1, 1_000_000]).describe(
      "Maximum concurrent calls of a process.",
    ),
  })
  .prefault({})
  .describe("Overload protection. Spillover is refused first, then on-demand, then provisioned.")
  .transform((overload): OverloadSettings => ({
    loopDelayMs: overload.loop_delay,
    maxCalls: overload.max_calls,
  }));

const mostTokensPerMinute = 1_000_000_000_000;

export const poolSchema = z
  .strictObject({
    kind: z
      .enum(["shared", "dedicated"])
      .prefault("shared")
      .describe(
        "`dedicated` serves provisioned calls only. `shared`: other calls get what is not sold.",
      ),
    tokens_per_minute: requiredWholeNumber([1, mostTokensPerMinute]).describe(
      "What its targets can serve together.",
    ),
    max_in_flight: requiredWholeNumber([1, 65_336])
      .describe("Maximum concurrent calls. Default: unlimited.")
      .optional(),
    unit_tokens_per_minute: wholeNumber(10_000, [1, mostTokensPerMinute]).describe(
      "What one provisioned unit guarantees.",
    ),
    on_demand_floor: wholeNumber(20, [0, 99]).describe(
      "Percentage that is never sold; a dedicated pool sells all.",
    ),
  })
  .describe("Capacity that keys can buy units of.");

export const poolsSchema = z
  .record(identifier("Name of the pool."), poolSchema)
  .prefault({})
  .describe("Capacity for provisioned throughput, by name; targets name their pool.")
  .transform(
    (pools): ReadonlyMap<string, Pool> =>
      new Map(Object.entries(pools).map(([name, pool]) => [name, buildPool(name, pool)])),
  );

function buildPool(name: string, pool: z.output<typeof poolSchema>): Pool {
  return {
    name,
    kind: pool.kind,
    tokensPerMinute: pool.tokens_per_minute,
    maxInFlight: pool.max_in_flight,
    // A dedicated pool is only for its buyers, so nothing is kept for on-demand calls.
    onDemandFloorPercent: pool.kind === "dedicated" ? 0 : pool.on_demand_floor,
    unitTokensPerMinute: pool.unit_tokens_per_minute,
  };
}
