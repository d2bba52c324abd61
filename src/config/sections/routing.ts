import { z } from "zod";
import type { Pool } from "../../domain/limits/capacity.ts";
import type { OverloadSettings, RoutingSettings } from "../../domain/routing-settings.ts";
import {
  duration,
  flag,
  identifier,
  requiredWholeNumber,
  wholeNumber,
} from "../../settings/values.ts";

/** How calls find a target, what is done when targets fail, and capacity that keys can buy. */

const ejectionSchema = z
  .strictObject({
    failures: wholeNumber({
      about: "Failures one after the other that eject a target.",
      min: 1,
      max: 1000,
      initial: 5,
    }),
    error_percent: wholeNumber({
      about: "Share of failed attempts, in percent of those of ten seconds, that ejects a target.",
      min: 1,
      max: 100,
      initial: 40,
    }),
    least_attempts: wholeNumber({
      about: "Attempts in ten seconds from which the share counts.",
      min: 1,
      max: 1_000_000,
      initial: 20,
    }),
    first: duration({
      about: "How long a target is ejected the first time; each further time is twice as long.",
      min: "100ms",
      max: "1h",
      initial: "1s",
    }),
    longest: duration({
      about: "Longest time until an ejected target is asked again.",
      min: "100ms",
      max: "24h",
      initial: "5s",
    }),
  })
  .refine((ejection) => ejection.longest >= ejection.first, {
    path: ["longest"],
    error: "must not be shorter than routing.ejection.first",
  })
  .prefault({})
  .describe(
    "When a target that fails is ejected: it gets no calls while another target, or a fallback, can serve.",
  )
  .transform((ejection) => ({
    failures: ejection.failures,
    errorPercent: ejection.error_percent,
    leastAttempts: ejection.least_attempts,
    firstMs: ejection.first,
    longestMs: ejection.longest,
  }));

export const routingSchema = z
  .strictObject({
    attempts: wholeNumber({
      about:
        "Most attempts of one call, all targets together; each target may be tried once in any case.",
      min: 1,
      max: 10,
      initial: 3,
    }),
    retry_budget: wholeNumber({
      about:
        "Attempts at a target that has failed the call before, or is known to fail, in percent of its " +
        "other attempts of ten seconds. Hedges are bounded alike, in percent of a model's calls.",
      min: 0,
      max: 100,
      initial: 20,
    }),
    retry_floor: wholeNumber({
      about: "Retries in ten seconds that a target always gets, and hedges that a model does.",
      min: 0,
      max: 1000,
      initial: 10,
    }),
    first_backoff: duration({
      about: "Longest wait before a second attempt at the same target; it doubles each time.",
      min: "1ms",
      max: "1m",
      initial: "1s",
    }),
    longest_backoff: duration({
      about:
        "Longest wait that a provider may ask for before another attempt. The gateway's own wait, at " +
        "most as long, comes on top.",
      min: "1ms",
      max: "5m",
      initial: "5s",
    }),
    target_header: flag(
      "Whether answers name the upstream and the model that served, in `x-sluice-target`.",
      true,
    ),
    queue_limit: wholeNumber({
      about: "Most calls of one class that wait for one pool or upstream.",
      min: 0,
      max: 1_000_000,
      initial: 1000,
    }),
    ejection: ejectionSchema,
  })
  .prefault({})
  .describe("Retries, and targets that fail.")
  .transform((routing): RoutingSettings => ({
    attempts: routing.attempts,
    retryBudgetPercent: routing.retry_budget,
    retryFloor: routing.retry_floor,
    firstBackoffMs: routing.first_backoff,
    longestBackoffMs: routing.longest_backoff,
    showsTarget: routing.target_header,
    queueLimit: routing.queue_limit,
    ejection: routing.ejection,
  }));

export const overloadSchema = z
  .strictObject({
    loop_delay: duration({
      about: "Delay of a worker's event loop above which it refuses calls.",
      min: "5ms",
      max: "10s",
      initial: "100ms",
    }),
    max_calls: wholeNumber({
      about: "Most calls under way at once, in each worker.",
      min: 1,
      max: 1_000_000,
      initial: 20_000,
    }),
  })
  .prefault({})
  .describe(
    "When the process has too much to do. Refused first is spillover, then on-demand, then provisioned.",
  )
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
        "`dedicated`: for provisioned calls alone, such as a provisioned model of the provider; " +
          "`shared`: other calls get what is not sold.",
      ),
    tokens_per_minute: requiredWholeNumber({
      about: "Tokens per minute that its targets can serve together.",
      min: 1,
      max: mostTokensPerMinute,
    }),
    max_in_flight: requiredWholeNumber({
      about: "Most calls at once. Without it: as many as come.",
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
      about: "Share, in percent, that is never sold. Not for a dedicated pool, which sells all.",
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
    // Only its buyers can use a dedicated pool, so nothing is kept for on-demand calls.
    onDemandFloorPercent: pool.kind === "dedicated" ? 0 : pool.on_demand_floor,
    unitTokensPerMinute: pool.unit_tokens_per_minute,
  };
}
