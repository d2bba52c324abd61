import type { Clock } from "../../domain/clock.ts";
import {
  unitsIn,
  type Pool,
  type PoolName,
  type UnitHoldings,
} from "../../domain/limits/capacity.ts";
import { arePlacesOversold, keptPlaces, keyPlaces, openPlaces, openTokens } from "./guarantee.ts";
import type { TokenLimits } from "../../store/limits/limit-store.ts";
import type { CapacityClass } from "../../domain/usage/usage.ts";
import type { PlaceHolder, Waited } from "./place.ts";

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

/** The places of one pool: who holds them, and for whom one is free. */
export class PoolPlaces {
  readonly #counts: Record<CapacityClass, number> = {
    provisioned: 0,
    spillover: 0,
    "on-demand": 0,
  };
  /** Provisioned places by key. */
  readonly #keys = new Map<string, number>();

  of(capacityClass: CapacityClass): number {
    return this.#counts[capacityClass];
  }

  /** The places of a key within its guarantee. */
  ofKey(keyId: string): number {
    return this.#keys.get(keyId) ?? 0;
  }

  /** Provisioned places by key. */
  get keys(): ReadonlyMap<string, number> {
    return this.#keys;
  }

  /** More may be held than there are, after a reload. */
  get all(): number {
    return this.#counts.provisioned + this.open;
  }

  /** Places of calls without a guarantee. */
  get open(): number {
    return this.#counts.spillover + this.#counts["on-demand"];
  }

  /** Each must be given back once. */
  take({ capacityClass, keyId }: PlaceHolder): void {
    this.#count(capacityClass, keyId, 1);
  }

  giveBack({ capacityClass, keyId }: PlaceHolder): void {
    this.#count(capacityClass, keyId, -1);
  }

  hasFree(holder: PlaceHolder, bounds: PoolBounds): boolean {
    const spare = bounds.places - this.all;
    if (spare <= 0) return false;
    if (this.isWithinOwn(holder, bounds)) return true;
    const isOpen = holder.capacityClass !== "provisioned";
    if (isOpen && this.open >= bounds.openPlaces) return false;
    return spare > bounds.keptPlaces || spare > this.#unusedOwn(bounds);
  }

  /** Whether the next place is one that the key's units guarantee. */
  isWithinOwn({ capacityClass, keyId }: PlaceHolder, { ownPlaces }: PoolBounds): boolean {
    return capacityClass === "provisioned" && this.ofKey(keyId) < ownPlaces(keyId);
  }

  /** Guaranteed places that their keys do not use at the moment. */
  #unusedOwn({ keptPlaces, ownPlaces }: PoolBounds): number {
    let unused = keptPlaces;
    for (const [keyId, held] of this.#keys) unused -= Math.min(held, ownPlaces(keyId));
    return Math.max(0, unused);
  }

  #count(capacityClass: CapacityClass, keyId: string, more: 1 | -1): void {
    this.#counts[capacityClass] += more;
    if (capacityClass !== "provisioned") return;
    const held = this.ofKey(keyId) + more;
    if (held === 0) this.#keys.delete(keyId);
    else this.#keys.set(keyId, held);
  }
}
