import type { PlaceRequest } from "../place.ts";
import type { PoolBounds } from "../pool-bounds.ts";
import type { PoolGate } from "../pool-gate.ts";
import type { CapacityClass } from "../../../domain/usage/usage.ts";
import type { Demand, SlotSet, SlotSetTerms } from "./slot-set.ts";

export interface PoolSlotsOptions {
  readonly name: string;
  readonly newSet: (terms: SlotSetTerms) => SlotSet;
  /** Undefined before the first call. */
  readonly use: () => PoolGate | undefined;
}

/**
 * This process's slots of a pool, of three sorts: those that units guarantee to a key, by key; the
 * rest; and how many of the rest may be held by calls without a guarantee. So no process ever gives
 * a place to others that a key is guaranteed.
 */
export class PoolSlots {
  readonly #options: PoolSlotsOptions;
  readonly #own = new Map<string, SlotSet>();
  readonly #rest: SlotSet;
  /** How many of the rest calls without a guarantee may hold. */
  readonly #open: SlotSet;
  #whole: PoolBounds | undefined;

  constructor(options: PoolSlotsOptions) {
    this.#options = options;
    const { name, newSet } = options;
    const rest = { bound: `pool ${name}`, demand: () => this.#restDemand() };
    const open = { bound: `pool ${name} open`, demand: () => this.#openDemand() };
    this.#rest = newSet({ ...rest, leastShare: 1 });
    this.#open = newSet({ ...open, leastShare: 1 });
  }

  /** The bounds of this process, given those of all. */
  follow(whole: PoolBounds): PoolBounds {
    this.#whole = whole;
    if (whole.places === Infinity) return whole;
    const kept = whole.isOversold ? 0 : whole.keptPlaces;
    const rest = this.#rest;
    const open = this.#open;
    rest.limit = whole.places - kept;
    // Without sales, all of the rest is open, and one count is enough.
    open.limit = whole.openPlaces < rest.limit ? whole.openPlaces : Infinity;
    this.#claimOwn();
    const held = this.#options.use()?.places;
    let ownPlaces = 0;
    let unusedOwn = 0;
    for (const [keyId, own] of this.#own) {
      own.limit = this.#ownLimit(keyId);
      ownPlaces += own.places;
      unusedOwn += Math.max(0, own.places - (held?.ofKey(keyId) ?? 0));
    }
    const restRoom = Math.max(0, rest.places - this.#restUsed());
    return {
      ...whole,
      places: (held?.all ?? 0) + unusedOwn + restRoom,
      openPlaces: open.places,
      keptPlaces: ownPlaces,
      ownPlaces: (keyId) => this.#own.get(keyId)?.places ?? 0,
    };
  }

  /** What a call lacks that found the pool full. */
  lacking({ keyId }: PlaceRequest, capacityClass: CapacityClass): SlotSet[] {
    if (this.#whole === undefined || this.#whole.places === Infinity) return [];
    const rest = this.#rest;
    const open = this.#open;
    const lacking = rest.hasRoom ? [] : [rest];
    if (capacityClass !== "provisioned") return open.hasRoom ? lacking : [...lacking, open];
    const ownLimit = this.#ownLimit(keyId);
    if (ownLimit === 0) return lacking;
    const own = this.#ownOf(keyId);
    const mayGetOwn = own.places < ownLimit && !own.isRefused;
    return mayGetOwn ? [own] : lacking;
  }

  leaving(): void {
    for (const set of [...this.#own.values(), this.#rest, this.#open]) set.leaving();
  }

  left(): void {
    if (this.#whole === undefined || this.#whole.places === Infinity) return;
    for (const own of this.#own.values()) own.giveBack();
    this.#rest.left();
    this.#open.left();
  }

  /** Prolongs what is held, and forgets keys that need no slot. */
  beat(): void {
    this.#claimOwn();
    for (const [keyId, own] of this.#own) {
      if (own.isUnused) this.#own.delete(keyId);
      else own.beat();
    }
    this.#rest.beat();
    this.#open.beat();
  }

  async close(): Promise<void> {
    await Promise.all([...this.#own.values(), this.#rest, this.#open].map((set) => set.close()));
  }

  /** A key's call may have taken one of the rest while its own places were with other processes. */
  #claimOwn(): void {
    for (const [keyId, held] of this.#options.use()?.places.keys ?? []) {
      if (this.#ownLimit(keyId) === 0) continue;
      const own = this.#ownOf(keyId);
      if (held > own.places) own.plan();
    }
  }

  #ownOf(keyId: string): SlotSet {
    let own = this.#own.get(keyId);
    if (own === undefined) {
      const { name, newSet } = this.#options;
      const bound = `pool ${name} key ${keyId}`;
      own = newSet({ bound, demand: () => this.#ownDemand(keyId), leastShare: 0 });
      this.#own.set(keyId, own);
    }
    own.limit = this.#ownLimit(keyId);
    return own;
  }

  #ownLimit(keyId: string): number {
    const whole = this.#whole;
    return whole === undefined || whole.isOversold ? 0 : whole.ownPlaces(keyId);
  }

  #ownDemand(keyId: string): Demand {
    const pool = this.#options.use();
    const held = pool?.places.ofKey(keyId) ?? 0;
    const used = Math.min(held, this.#own.get(keyId)?.places ?? 0);
    return {
      used,
      waiting: held - used + (pool?.gate.guaranteed.groups.get(keyId)?.size ?? 0),
    };
  }

  /** Provisioned places beyond what is granted to their keys, and all open ones. */
  #restUsed(): number {
    const pool = this.#options.use();
    let used = pool?.places.all ?? 0;
    for (const [keyId, own] of this.#own) {
      used -= Math.min(pool?.places.ofKey(keyId) ?? 0, own.places);
    }
    return used;
  }

  #restDemand(): Demand {
    const waiting = this.#options.use()?.gate.open.size ?? 0;
    return { used: this.#restUsed(), waiting: this.#waitingBeyondOwn() + waiting };
  }

  #openDemand(): Demand {
    const pool = this.#options.use();
    return { used: pool?.places.open ?? 0, waiting: pool?.gate.open.size ?? 0 };
  }

  /** Waiting calls within guarantees whose keys have no more places of their own. */
  #waitingBeyondOwn(): number {
    let waiting = 0;
    for (const [keyId, { size }] of this.#options.use()?.gate.guaranteed.groups ?? []) {
      const own = this.#own.get(keyId);
      const hasAll = own === undefined || own.places >= this.#ownLimit(keyId);
      if (hasAll || own.isRefused) waiting += size;
    }
    return waiting;
  }
}
