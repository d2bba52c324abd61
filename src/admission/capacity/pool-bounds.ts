import {
  keptPlaces,
  keyPlaces,
  openPlaces,
  openTokens,
  unitsIn,
  type Pool,
  type UnitHoldings,
} from "../../domain/limits/capacity.ts";

/** What a pool can take. Asked anew for every decision, so that changes hold at once. */
export interface PoolBounds {
  /** Calls at once, of all classes. */
  readonly places: number;
  /** Of these, calls without a guarantee. */
  readonly openPlaces: number;
  /** Of all, those that units guarantee to their keys, all keys together. */
  readonly keptPlaces: number;
  /** Of these, those of one key. */
  readonly ownPlaces: (keyId: string) => number;
  /** Tokens per minute of calls without a guarantee; undefined: nobody counts them. */
  readonly openTokens: number | undefined;
  /** Whether it takes calls with a guarantee alone. */
  readonly isDedicated: boolean;
}

/** Units of pools that live keys have. Asked for every decision. */
export interface PoolUnits {
  readonly holdings: (pool: string) => UnitHoldings;
  readonly unitsOf: (pool: string, keyId: string) => number;
}

/** Of a configured pool. */
export function boundsOfPool(pool: Pool, units: PoolUnits): PoolBounds {
  const holdings = units.holdings(pool.name);
  const soldUnits = unitsIn(holdings);
  return {
    places: pool.maxInFlight ?? Infinity,
    openPlaces: openPlaces(pool, soldUnits),
    keptPlaces: keptPlaces(pool, holdings),
    ownPlaces: (keyId) => keyPlaces(units.unitsOf(pool.name, keyId), pool),
    openTokens: openTokens(pool, soldUnits),
    isDedicated: pool.kind === "dedicated",
  };
}

/** Of all targets of an upstream that name no pool: what the upstream has is for everybody. */
export const boundsOfUpstream: PoolBounds = {
  places: Infinity,
  openPlaces: Infinity,
  keptPlaces: 0,
  ownPlaces: () => 0,
  openTokens: undefined,
  isDedicated: false,
};
