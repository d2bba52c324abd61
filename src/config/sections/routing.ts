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

/** How calls find a target, what happens when targets fail, and the capacity that keys can buy. */

const outSchema = z
  .strictObject({
    failures: wholeNumber({
      about: "Consecutive failures that take a target out.",
      min: 1,
      max: 1000,
      initial: 5,
    }),
    error_percent: wholeNumber({
      about: "Percentage of failed attempts in ten seconds that takes a target out.",
      min: 1,
      max: 100,
      initial: 40,
    }),
    least_attempts: wholeNumber({
      about: "Minimum attempts in ten seconds for `error_percent` to apply.",
      min: 1,
      max: 1_000_000,
      initial: 20,
    }),
    first: duration({
      about: "How long a target is out at first; each further time is twice as long.",
      min: "100ms",
      max: "1h",
      initial: "1s",
    }),
    longest: duration({
      about: "Longest time that a target is out.",
      min: "100ms",
      max: "24h",
      initial: "5s",
    }),
  })
  .refine((out) => out.longest >= out.first, {
    path: ["longest"],
    error: "must not be shorter than routing.out.first",
  })
  .prefault({})
  .describe(
    "When a target that fails is out: it gets no calls while another target, or a fallback, can serve.",
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
    attempts: wholeNumber({
      about:
        "Maximum attempts of a call over all targets; each target may be tried once in any " +
        "case.",
      min: 1,
      max: 10,
      initial: 3,
    }),
    retry_budget: wholeNumber({
      about:
        "Retries at a failing target, in percent of its other attempts in ten seconds. " +
        "Hedges away from a silent target count as retries; those of `hedge_after` are limited in " +
        "the same way, in percent of a model's calls.",
      min: 0,
      max: 100,
      initial: 20,
    }),
    retry_floor: wholeNumber({
      about: "Retries per target, and hedges per model, that are always allowed in ten seconds.",
      min: 0,
      max: 1000,
      initial: 10,
    }),
    first_backoff: duration({
      about: "Maximum wait before a second attempt at the same target; it doubles each time.",
      min: "1ms",
      max: "1m",
      initial: "1s",
    }),
    longest_backoff: duration({
      about:
        "Maximum `retry-after` of a provider that is honoured. The gateway's own back-off, " +
        "at most as long, is added.",
      min: "1ms",
      max: "5m",
      initial: "5s",
    }),
    target_header: flag(
      "Whether answers name the upstream and the model that served, in `x-sluice-target`.",
      true,
    ),
    queue_limit: wholeNumber({
      about: "Maximum calls of one class waiting for one pool or upstream.",
      min: 0,
      max: 1_000_000,
      initial: 1000,
    }),
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
    queueLimit: routing.queue_limit,
    out: routing.out,
  }));

export const overloadSchema = z
  .strictObject({
    loop_delay: duration({
      about: "Event loop delay above which a process refuses calls.",
      min: "5ms",
      max: "10s",
      initial: "100ms",
    }),
    max_calls: wholeNumber({
      about: "Maximum concurrent calls of each process.",
      min: 1,
      max: 1_000_000,
      initial: 20_000,
    }),
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
        "`dedicated`: for provisioned calls only, such as a provisioned model of the " +
          "provider. `shared`: other calls get what is not sold.",
      ),
    tokens_per_minute: requiredWholeNumber({
      about: "Tokens per minute that its targets can serve together.",
      min: 1,
      max: mostTokensPerMinute,
    }),
    max_in_flight: requiredWholeNumber({
      about: "Maximum concurrent calls. Default: unlimited.",
      min: 1,
      max: 65_336,
    }).optional(),
    unit_tokens_per_minute: wholeNumber({
      about: "Tokens per minute that one provisioned unit guarantees.",
      min: 1,
      max: mostTokensPerMinute,
      initial: 10_000,
    }),
    on_demand_floor: wholeNumber({
      about: "Percentage that is never sold. Not for a dedicated pool, which sells all.",
      min: 0,
      max: 99,
      initial: 20,
    }),
  })
  .describe("Capacity that keys can buy units of.");

export const poolsSchema = z
  .record(identifier("Name of the pool."), poolSchema)
  .prefault({})
  .describe("Pools of capacity for provisioned throughput, by name; targets name their pool.")
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
