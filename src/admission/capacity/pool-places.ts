import type { CapacityClass } from "../../domain/usage/usage.ts";
import type { PlaceHolder } from "./place.ts";
import type { PoolBounds } from "./pool-bounds.ts";

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
