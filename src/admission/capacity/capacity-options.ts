import type { Clock } from "../../domain/clock.ts";
import type { Pool } from "../../domain/limits/capacity.ts";
import type { CapacityClass } from "../../domain/usage/usage.ts";
import type { ConcurrencyLimit } from "../../routing/health/concurrency-limit.ts";
import type { TokenLimits } from "../../store/limits/limit-store.ts";
import type { UpstreamPlaces } from "../places/upstream-places.ts";
import type { BusyPool, PlaceCandidate, PlaceRequest } from "./place.ts";
import type { PoolBounds, PoolUnits } from "./pool-bounds.ts";
import type { GateUse } from "./pool-places.ts";
import type { Waited } from "./waiter.ts";

export interface CapacityOptions {
  readonly clock: Clock;
  readonly limits: TokenLimits;
  readonly settings: () => { readonly queueLimit: number };
  readonly units: PoolUnits;
  /** The concurrency limit of a target. */
  readonly limitOf: (targetId: string) => ConcurrencyLimit;
  /** A wait in the queue of a pool, or of an upstream, has ended. Must not throw. */
  readonly onWaited?: (place: PoolName, waited: Waited) => void;
  /**
   * Called when a target has no place. Resolves when places that no call uses have been given back,
   * after which the target is tried again; undefined: there are none.
   */
  readonly recall?: (refused: RefusedPlace) => Promise<void> | undefined;
  /** What this process may use of bounds that several processes share; default: all. */
  readonly parts?: BoundParts | undefined;
}

/** A call that found no place at a target. */
export interface RefusedPlace {
  readonly request: PlaceRequest;
  readonly target: PlaceCandidate["target"];
  readonly why: BusyPool;
}

/** The parts of a process of bounds that it shares. Read for every decision. */
export interface BoundParts {
  /** How many processes share the bounds. */
  readonly processes: number;
  ofPool(pool: Pool, whole: PoolBounds): PoolBounds;
  ofUpstream(name: string, whole: number): number;
  /** Of the places for drained answers of an upstream. */
  ofDraining(whole: number): number;
  /** A place is given back: called before calls that wait for it are served, */
  leaving(place: PoolName): void;
  /** and afterwards. */
  left(place: PoolName): void;
  /** Asks for more places of an upstream. */
  askMore(upstream: string): Promise<void> | undefined;
}

/** A configured pool, or the targets of an upstream that name none. */
export interface PoolName {
  readonly kind: "pool" | "upstream";
  readonly name: string;
}

export interface PoolView extends PoolName {
  readonly inFlight: Readonly<Record<CapacityClass, number>>;
  readonly queued: Readonly<Record<CapacityClass, number>>;
}

/** What calls of this process hold and wait for at a pool or an upstream. */
export interface PartUse {
  readonly gate: GateUse | undefined;
  /** Undefined for a pool. */
  readonly upstream: Pick<UpstreamPlaces, "count" | "waiting"> | undefined;
}
