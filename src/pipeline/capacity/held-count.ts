import type { CapacityClass } from "../../domain/usage.ts";
import type { PoolBounds } from "./pool-bounds.ts";

/** How many places of a pool are held, by class. */
export class HeldCount {
  readonly #counts: Record<CapacityClass, number> = {
    provisioned: 0,
    spillover: 0,
    "on-demand": 0,
  };

  of(capacityClass: CapacityClass): number {
    return this.#counts[capacityClass];
  }

  get all(): number {
    return this.#counts.provisioned + this.#open();
  }

  take(capacityClass: CapacityClass): void {
    this.#counts[capacityClass] += 1;
  }

  giveBack(capacityClass: CapacityClass): void {
    this.#counts[capacityClass] -= 1;
  }

  /** More may be held than there are places, after these became fewer. */
  hasFree(capacityClass: CapacityClass, bounds: PoolBounds): boolean {
    if (this.all >= bounds.places) return false;
    return capacityClass === "provisioned" || this.#open() < bounds.openPlaces;
  }

  #open(): number {
    return this.#counts.spillover + this.#counts["on-demand"];
  }
}
