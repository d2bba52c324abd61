import type { ConfiguredPlaces } from "../../../admission/capacity/place.ts";

/** One of several workers. */
export interface WorkerShare {
  readonly workers: number;
  /** From 1. */
  readonly number: number;
}

/** A worker's share of all places; the shares of all workers together are all of them. */
export function shareOf(
  { pools, upstreams }: ConfiguredPlaces,
  share: WorkerShare,
): ConfiguredPlaces {
  return {
    pools: mapValues(pools, (pool) => ({
      ...pool,
      maxInFlight: pool.maxInFlight === undefined ? undefined : partOf(pool.maxInFlight, share),
    })),
    upstreams: mapValues(upstreams, ({ maxInFlight, drain }) => ({
      maxInFlight: partOf(maxInFlight, share),
      drain: drain && { ...drain, limit: partOf(drain.limit, share) },
    })),
  };
}

/** The first workers share what is left by the division. */
export function partOf(limit: number, { workers, number }: WorkerShare): number {
  if (limit === Infinity) return limit;
  return Math.floor(limit / workers) + (number <= limit % workers ? 1 : 0);
}

function mapValues<Value, Other>(
  values: ReadonlyMap<string, Value>,
  change: (value: Value) => Other,
): ReadonlyMap<string, Other> {
  return new Map([...values].map(([name, value]) => [name, change(value)]));
}
