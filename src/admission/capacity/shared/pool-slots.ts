import type { PoolBounds } from "../pool-bounds.ts";
import type { PoolGate } from "../pool-gate.ts";
import { type Demand, type SlotServices, SlotSet } from "./slot-set.ts";

/**
 * This process's slots of a pool, of three sorts: those that units guarantee to a key, by key; the
 * rest; and how many of the rest may be held by calls without a guarantee. So no process ever gives
 * a place to others that a key is guaranteed.
 */
export class PoolSlots {
  /** Its state in this process. */
  pool: PoolGate | undefined;
  readonly #name: string;
  readonly #services: SlotServices;
  readonly #own = new Map<string, SlotSet>();
  readonly #rest: SlotSet;
  /** How many of the rest calls without a guarantee may hold. */
  readonly #open: SlotSet;
  #whole: PoolBounds | undefined;

  constructor(name: string, services: SlotServices) {
    this.#name = name;
    this.#services = services;
    this.#rest = this.#newSet("", 1, () => this.#restDemand());
    this.#open = this.#newSet(" open", 1, () => this.#openDemand());
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
    const held = this.pool?.places;
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
  lacking(keyId: string, isGuaranteed: boolean): SlotSet[] {
    if (this.#whole === undefined || this.#whole.places === Infinity) return [];
    const rest = this.#rest;
    const open = this.#open;
    const lacking = rest.hasRoom ? [] : [rest];
    if (!isGuaranteed) return open.hasRoom ? lacking : [...lacking, open];
    const ownLimit = this.#ownLimit(keyId);
    if (ownLimit === 0) return lacking;
    const own = this.#ownOf(keyId);
    const mayGetOwn = own.places < ownLimit && !own.isRefused;
    return mayGetOwn ? [own] : lacking;
  }

  leaving(): void {
    for (const own of this.#own.values()) own.leaving();
    this.#rest.leaving();
    this.#open.leaving();
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
    for (const [keyId, held] of this.pool?.places.keys ?? []) {
      if (this.#ownLimit(keyId) === 0) continue;
      const own = this.#ownOf(keyId);
      if (held > own.places) own.plan();
    }
  }

  #newSet(of: string, leastShare: 0 | 1, demand: () => Demand): SlotSet {
    const bound = `pool ${this.#name}${of}`;
    const onChanged = (): void => this.pool?.gate.serve();
    return new SlotSet({ ...this.#services, bound, demand, leastShare, onChanged });
  }

  #ownOf(keyId: string): SlotSet {
    let own = this.#own.get(keyId);
    if (own === undefined) {
      own = this.#newSet(` key ${keyId}`, 0, () => this.#ownDemand(keyId));
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
    const { pool } = this;
    const held = pool?.places.ofKey(keyId) ?? 0;
    const used = Math.min(held, this.#own.get(keyId)?.places ?? 0);
    return {
      used,
      waiting: held - used + (pool?.gate.guaranteed.groups.get(keyId)?.size ?? 0),
    };
  }

  /** Provisioned places beyond what is granted to their keys, and all open ones. */
  #restUsed(): number {
    const { pool } = this;
    let used = pool?.places.all ?? 0;
    for (const [keyId, own] of this.#own) {
      used -= Math.min(pool?.places.ofKey(keyId) ?? 0, own.places);
    }
    return used;
  }

  #restDemand(): Demand {
    const waiting = this.pool?.gate.open.size ?? 0;
    return { used: this.#restUsed(), waiting: this.#waitingBeyondOwn() + waiting };
  }

  #openDemand(): Demand {
    const { pool } = this;
    return { used: pool?.places.open ?? 0, waiting: pool?.gate.open.size ?? 0 };
  }

  /** Waiting calls within guarantees whose keys have no more places of their own. */
  #waitingBeyondOwn(): number {
    let waiting = 0;
    for (const [keyId, { size }] of this.pool?.gate.guaranteed.groups ?? []) {
      const own = this.#own.get(keyId);
      const hasAll = own === undefined || own.places >= this.#ownLimit(keyId);
      if (hasAll || own.isRefused) waiting += size;
    }
    return waiting;
  }
}
