import type { HolderFacts, PlaceCandidate } from "../../../../admission/capacity/place.ts";
import type { Clock } from "../../../../domain/clock.ts";
import type { PlaceId, WireBound } from "../../../link/place-wire.ts";

export interface KeptPlacesOptions {
  readonly clock: Pick<Clock, "monotonic" | "schedule">;
  readonly giveBack: (id: PlaceId) => void;
}

type Holder = Pick<HolderFacts, "keyId" | "capacityClass" | "provisionedPool">;

interface KeptPlace {
  readonly id: PlaceId;
  readonly target: PlaceCandidate["target"];
  readonly keptAtMs: number;
}

/** How long an unused place is kept. */
const idleMs = 50;
/** Most places kept for one key, class and target, and for all together. */
const mostAlike = 16;
const mostKept = 256;

/**
 * Places of ended attempts that control still counts, kept for the next attempts of the same key
 * and class at the same target, which then need not ask for one. None are kept where control has
 * reported that places are scarce.
 */
export class KeptPlaces {
  readonly #options: KeptPlacesOptions;
  /** By holder and target, the newest last. */
  readonly #places = new Map<string, KeptPlace[]>();
  readonly #scarce: Readonly<Record<WireBound[0], Set<string>>> = {
    pool: new Set(),
    upstream: new Set(),
    target: new Set(),
  };
  #mayKeep = false;
  #count = 0;
  #isPlanned = false;

  constructor(options: KeptPlacesOptions) {
    this.#options = options;
  }

  take(holder: Holder, target: PlaceCandidate["target"]): PlaceId | undefined {
    const taken = this.#places.get(nameOf(holder, target))?.pop();
    if (taken !== undefined) this.#count -= 1;
    return taken?.id;
  }

  /** False when the place must be given back. */
  keep(id: PlaceId, holder: Holder, target: PlaceCandidate["target"]): boolean {
    if (!this.#mayKeep || this.#count >= mostKept || this.#isScarce(target)) return false;
    const name = nameOf(holder, target);
    let alike = this.#places.get(name);
    if (alike === undefined) this.#places.set(name, (alike = []));
    if (alike.length >= mostAlike) return false;
    alike.push({ id, target, keptAtMs: this.#options.clock.monotonic() });
    this.#count += 1;
    this.#plan();
    return true;
  }

  /**
   * Gives back the places kept there. Control sends this first of all, even if nothing is scarce.
   */
  scarce(bounds: readonly WireBound[]): void {
    this.#mayKeep = true;
    for (const [kind, name] of bounds) this.#scarce[kind].add(name);
    this.#giveBack(({ target }) => this.#isScarce(target));
  }

  plenty(bounds: readonly WireBound[]): void {
    for (const [kind, name] of bounds) this.#scarce[kind].delete(name);
  }

  /** Control, which counted them, has ended. */
  forget(): void {
    this.#mayKeep = false;
    this.#places.clear();
    this.#count = 0;
    for (const names of Object.values(this.#scarce)) names.clear();
  }

  #isScarce({ id, upstream, pool }: PlaceCandidate["target"]): boolean {
    const { pool: pools, upstream: upstreams, target: targets } = this.#scarce;
    return (pool !== undefined && pools.has(pool)) || upstreams.has(upstream) || targets.has(id);
  }

  #plan(): void {
    if (this.#isPlanned) return;
    this.#isPlanned = true;
    const { clock } = this.#options;
    clock.schedule(() => {
      this.#isPlanned = false;
      const sinceMs = clock.monotonic() - idleMs;
      this.#giveBack(({ keptAtMs }) => keptAtMs <= sinceMs);
      if (this.#count > 0) this.#plan();
    }, idleMs);
  }

  #giveBack(isUnwanted: (kept: KeptPlace) => boolean): void {
    for (const [name, alike] of this.#places) {
      const unwanted = new Set(alike.filter(isUnwanted));
      const left = alike.filter((kept) => !unwanted.has(kept));
      this.#count -= unwanted.size;
      if (left.length > 0) this.#places.set(name, left);
      else this.#places.delete(name);
      for (const { id } of unwanted) this.#options.giveBack(id);
    }
  }
}

function nameOf(
  { keyId, capacityClass, provisionedPool = "" }: Holder,
  { id, upstream, pool = "" }: PlaceCandidate["target"],
): string {
  return `${keyId}\n${capacityClass}\n${provisionedPool}\n${id}\n${upstream}\n${pool}`;
}
