import { openPlaces, openTokens, type Pool } from "../../domain/capacity.ts";
import type { Upstream } from "../snapshot.ts";

/** What a pool can take. Asked anew for every decision, so that changes hold at once. */
export interface PoolBounds {
  /** Calls at once, of all classes. */
  readonly places: number;
  /** Of these, calls without a guarantee. */
  readonly openPlaces: number;
  /** Tokens per minute of calls without a guarantee; undefined: nobody counts them. */
  readonly openTokens: number | undefined;
  /** Whether it takes calls with a guarantee alone. */
  readonly isDedicated: boolean;
}

/** Of a configured pool of which so many units are sold. */
export function boundsOfPool(pool: Pool, soldUnits: number): PoolBounds {
  return {
    places: pool.maxInFlight ?? Infinity,
    openPlaces: openPlaces(pool, soldUnits),
    openTokens: openTokens(pool, soldUnits),
    isDedicated: pool.kind === "dedicated",
  };
}

/** Of all targets of an upstream that name no pool: its places, for everybody. */
export function boundsOfUpstream({ inFlight }: Pick<Upstream, "inFlight">): PoolBounds {
  const { limit } = inFlight;
  return { places: limit, openPlaces: limit, openTokens: undefined, isDedicated: false };
}
