import type { CapacityClass } from "../../domain/usage/usage.ts";
import type { PlaceHolder } from "./place.ts";
import type { PoolBounds } from "./pool-bounds.ts";

/** Counts the held places of a pool: by class, and within guarantees by key. */
export class HeldCount {
  readonly #counts: Record<CapacityClass, number> = {
    provisioned: 0,
    spillover: 0,
    "on-demand": 0,
  };
  readonly #keys = new Map<string, number>();

  of(capacityClass: CapacityClass): number {
    return this.#counts[capacityClass];
  }

  /** The places of a key within its guarantee. */
  ofKey(keyId: string): number {
    return this.#keys.get(keyId) ?? 0;
  }

  get all(): number {
    return this.#counts.provisioned + this.#open();
  }

  take({ capacityClass, keyId }: PlaceHolder): void {
    this.#counts[capacityClass] += 1;
    if (capacityClass === "provisioned") this.#keys.set(keyId, this.ofKey(keyId) + 1);
  }

  giveBack({ capacityClass, keyId }: PlaceHolder): void {
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

  /** More places may be held than there are, after a reload. */
  hasFree(holder: PlaceHolder, bounds: PoolBounds): boolean {
    if (this.all >= bounds.places) return false;
    if (this.isWithinOwn(holder, bounds)) return true;
    const isOpen = holder.capacityClass !== "provisioned";
    if (isOpen && this.#open() >= bounds.openPlaces) return false;
    const spare = bounds.places - this.all;
    return spare > bounds.keptPlaces || spare > this.#unusedOwn(bounds);
  }

  /** Guaranteed places that their keys do not use now. */
  #unusedOwn({ keptPlaces, ownPlaces }: PoolBounds): number {
    let unused = keptPlaces;
    for (const [keyId, held] of this.#keys) unused -= Math.min(held, ownPlaces(keyId));
    return Math.max(0, unused);
  }

  /** Held by spillover and on demand, outside any guarantee. */
  #open(): number {
    return this.#counts.spillover + this.#counts["on-demand"];
  }
}
