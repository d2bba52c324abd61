import type { ConfiguredPlaces } from "../../../../admission/capacity/place.ts";

/** One of several workers. */
export interface WorkerShare {
  readonly workers: number;
  /** From 1. */
  readonly number: number;
}

/** Places that other workers hold, or may hold, beyond their shares, by pool or upstream. */
export interface Lent {
  readonly pool: ReadonlyMap<string, number>;
  readonly upstream: ReadonlyMap<string, number>;
}

/**
 * A worker's share of all places; the shares of all workers add up to all places. None while it is
 * unknown what the others hold.
 */
export function shareOf(
  { pools, upstreams }: ConfiguredPlaces,
  share: WorkerShare,
  lent: Lent | undefined,
): ConfiguredPlaces {
  const lentOf = (kind: keyof Lent, name: string) =>
    lent === undefined ? Infinity : lent[kind].get(name);
  return {
    pools: mapValues(pools, (pool, name) => ({
      ...pool,
      maxInFlight:
        pool.maxInFlight && lessLent(partOf(pool.maxInFlight, share), lentOf("pool", name)),
    })),
    upstreams: mapValues(upstreams, ({ maxInFlight, drain }, name) => ({
      maxInFlight: lessLent(partOf(maxInFlight, share), lentOf("upstream", name)),
      drain: drain && { ...drain, limit: partOf(drain.limit, share) },
    })),
  };
}

/** The first workers get one more each of the remainder. */
export function partOf(limit: number, { workers, number }: WorkerShare): number {
  if (limit === Infinity) return limit;
  return Math.floor(limit / workers) + (number <= limit % workers ? 1 : 0);
}

function lessLent(part: number, lent = 0): number {
  return part === Infinity ? part : Math.max(0, part - lent);
}

function mapValues<Value, Other>(
  values: ReadonlyMap<string, Value>,
  change: (value: Value, name: string) => Other,
): ReadonlyMap<string, Other> {
  return new Map([...values].map(([name, value]) => [name, change(value, name)]));
}
