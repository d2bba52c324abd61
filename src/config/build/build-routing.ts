import type { Pool } from "../../domain/limits/capacity.ts";
import type { OverloadSettings, RoutingSettings } from "../../domain/routing-settings.ts";
import type { ConfigFile } from "../schema/schema.ts";

export function buildRouting(routing: ConfigFile["routing"]): RoutingSettings {
  const { ejection } = routing;
  return {
    attempts: routing.attempts,
    retryBudgetPercent: routing.retry_budget,
    retryFloor: routing.retry_floor,
    firstBackoffMs: routing.first_backoff,
    longestBackoffMs: routing.longest_backoff,
    showsTarget: routing.target_header,
    queueLimit: routing.queue_limit,
    ejection: {
      failures: ejection.failures,
      errorPercent: ejection.error_percent,
      leastAttempts: ejection.least_attempts,
      firstMs: ejection.first,
      longestMs: ejection.longest,
    },
  };
}

export function buildOverload(overload: ConfigFile["overload"]): OverloadSettings {
  return { loopDelayMs: overload.loop_delay, maxCalls: overload.max_calls };
}

export function buildPools(pools: ConfigFile["pools"]): ReadonlyMap<string, Pool> {
  return new Map(Object.entries(pools).map(([name, pool]) => [name, buildPool(name, pool)]));
}

function buildPool(name: string, pool: ConfigFile["pools"][string]): Pool {
  return {
    name,
    kind: pool.kind,
    tokensPerMinute: pool.tokens_per_minute,
    maxInFlight: pool.max_in_flight,
    // Nobody but its buyers can use a dedicated pool, so there is nothing to keep for others.
    onDemandFloorPercent: pool.kind === "dedicated" ? 0 : pool.on_demand_floor,
    unitTokensPerMinute: pool.unit_tokens_per_minute,
  };
}
