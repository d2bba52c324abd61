import type { Clock } from "../../domain/clock.ts";
import type { CapacityClass } from "../../domain/usage/usage.ts";
import type { ConcurrencyLimit } from "../../routing/health/concurrency-limit.ts";
import type { FairQueue } from "./fair-queue.ts";
import type { UpstreamPlaces } from "./upstream-places.ts";
import type { TakenPlaces } from "./held-place.ts";
import type { PlaceHolder, Spot } from "./place.ts";
import type { PoolBounds } from "./pool-bounds.ts";
import type { QueueTurn } from "./waiter.ts";

export interface PoolPlacesOptions {
  readonly clock: Pick<Clock, "monotonic">;
  /** Name of the pool; undefined for the targets of an upstream that name none. */
  readonly pool: string | undefined;
}

/** What calls hold and wait for. */
export interface GateUse {
  readonly places: Pick<PoolPlaces, "of" | "ofKey" | "all" | "keys">;
  readonly queue: Pick<FairQueue<QueueTurn>, "count" | "provisioned" | "open">;
}

/** The places of one pool, each of which is taken together with one at an upstream and a target. */
export class PoolPlaces {
  readonly #options: PoolPlacesOptions;
  /** Called when an upstream or a target without room has room again. */
  readonly #onRoom: () => void;
  readonly #counts: Record<CapacityClass, number> = {
    provisioned: 0,
    spillover: 0,
    "on-demand": 0,
  };
  /** Provisioned places by key. */
  readonly #keys = new Map<string, number>();

  constructor(options: PoolPlacesOptions, onRoom: () => void) {
    this.#options = options;
    this.#onRoom = onRoom;
  }

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

  get all(): number {
    return this.#counts.provisioned + this.#open();
  }

  /** The caller must give them back exactly once. */
  take(holder: PlaceHolder, spot: Spot): TakenPlaces {
    const { capacityClass, keyId } = holder;
    this.#counts[capacityClass] += 1;
    if (capacityClass === "provisioned") this.#keys.set(keyId, this.ofKey(keyId) + 1);
    spot.target.take(keyId);
    spot.upstream.take();
    return { holder, spot, isBound: this.#isBound(holder) };
  }

  giveBack(taken: TakenPlaces): void {
    this.giveBackKept(taken);
    taken.spot.upstream.giveBack();
  }

  /** For a holder that gives back its places at the upstream itself. */
  giveBackKept({ holder: { capacityClass, keyId }, spot }: TakenPlaces): void {
    spot.target.giveBack(keyId);
    this.#counts[capacityClass] -= 1;
    if (capacityClass !== "provisioned") return;
    const held = this.ofKey(keyId) - 1;
    if (held === 0) this.#keys.delete(keyId);
    else this.#keys.set(keyId, held);
  }

  /** Whether the next place is one that the key's units guarantee. */
  isWithinOwn({ capacityClass, keyId }: PlaceHolder, { ownPlaces }: PoolBounds): boolean {
    return capacityClass === "provisioned" && this.ofKey(keyId) < ownPlaces(keyId);
  }

  /** Whether the pool itself has room. More places may be held than there are, after a reload. */
  hasFree(holder: PlaceHolder, bounds: PoolBounds): boolean {
    if (this.all >= bounds.places) return false;
    if (this.isWithinOwn(holder, bounds)) return true;
    const isOpen = holder.capacityClass !== "provisioned";
    if (isOpen && this.#open() >= bounds.openPlaces) return false;
    const spare = bounds.places - this.all;
    return spare > bounds.keptPlaces || spare > this.#unusedOwn(bounds);
  }

  /** What has no room for the holder at the spot; undefined if both have. */
  fullAt(
    holder: PlaceHolder,
    { upstream, target }: Spot,
    nowMs: number,
  ): UpstreamPlaces | ConcurrencyLimit | undefined {
    if (upstream.free === 0 && this.#isBound(holder)) return upstream;
    const isGuaranteed = holder.capacityClass === "provisioned";
    return isGuaranteed || target.hasRoom(holder.keyId, nowMs) ? undefined : target;
  }

  /** The first spot of a waiting call with room; if there is none, `onRoom` is called later. */
  spotFor(waiting: PlaceHolder & { readonly spots: readonly Spot[] }): Spot | undefined {
    const nowMs = this.#options.clock.monotonic();
    for (const spot of waiting.spots) {
      const full = this.fullAt(waiting, spot, nowMs);
      if (full === undefined) return spot;
      full.whenFree(this.#onRoom);
    }
    return undefined;
  }

  /** Whether the limits of upstreams apply: not to calls within the guarantees of a pool. */
  #isBound({ capacityClass }: PlaceHolder): boolean {
    return capacityClass !== "provisioned" || this.#options.pool === undefined;
  }

  /** Guaranteed places that their keys do not use at the moment. */
  #unusedOwn({ keptPlaces, ownPlaces }: PoolBounds): number {
    let unused = keptPlaces;
    for (const [keyId, held] of this.#keys) unused -= Math.min(held, ownPlaces(keyId));
    return Math.max(0, unused);
  }

  /** Places of spillover and on-demand calls, which have no guarantee. */
  #open(): number {
    return this.#counts.spillover + this.#counts["on-demand"];
  }
}
