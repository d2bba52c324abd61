import type { Clock } from "../../domain/clock.ts";
import { unitsIn, type Pool, type UnitHoldings } from "../../domain/limits/capacity.ts";
import { arePlacesOversold, keptPlaces, keyPlaces, openPlaces, openTokens } from "./guarantee.ts";
import type { TokenLimits } from "../../store/limits/limit-store.ts";
import type { Waited } from "./place.ts";

/** A configured pool, or the targets of an upstream that name none. */
export interface PoolName {
  readonly kind: "pool" | "upstream";
  readonly name: string;
}

/** The bounds of a pool. Read for every decision, so that changes apply at once. */
export interface PoolBounds {
  readonly places: number;
  /** Most concurrent calls without a guarantee. */
  readonly openPlaces: number;
  /** Places that units guarantee, for all keys together. */
  readonly keptPlaces: number;
  /** Places that its units guarantee to one key. */
  readonly ownPlaces: (keyId: string) => number;
  /** Tokens per minute of calls without a guarantee; undefined: they are not counted. */
  readonly openTokens: number | undefined;
  /** Whether it takes only calls with a guarantee. */
  readonly isDedicated: boolean;
  /** Whether more places are guaranteed than there are. */
  readonly isOversold: boolean;
}

/** The part of one process, where several share a pool. */
export interface SharedPool {
  /** The bounds of this process, given those of all. */
  follow(whole: PoolBounds): PoolBounds;
  /** A place was given back: called before those that wait for it are served, and after. */
  leaving(): void;
  left(): void;
}

/** Units of pools that live keys have. Read for every decision. */
export interface PoolUnits {
  readonly holdings: (pool: string) => UnitHoldings;
  readonly unitsOf: (pool: string, keyId: string) => number;
}

/** What the gates of a process have in common. */
export interface GateServices {
  readonly clock: Clock;
  readonly limits: TokenLimits;
  readonly settings: () => { readonly queueLimit: number };
  readonly units: PoolUnits;
  /** A wait in the queue of a pool, or of an upstream, has ended. Must not throw. */
  readonly onWaited?: (place: PoolName, waited: Waited) => void;
}

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
    isOversold: arePlacesOversold(pool, holdings),
  };
}

/** The bounds of all targets of an upstream without a pool: only the upstream's limit applies. */
export const boundsOfUpstream: PoolBounds = {
  places: Infinity,
  openPlaces: Infinity,
  keptPlaces: 0,
  ownPlaces: () => 0,
  openTokens: undefined,
  isDedicated: false,
  isOversold: false,
};
