import type { Clock } from "../../../domain/clock.ts";
import type { Pool } from "../../../domain/limits/capacity.ts";
import type { SlotStore } from "../../../store/slots.ts";
import { type BusyPool, classAt, type PlaceCandidate, type PlaceRequest } from "../place.ts";
import type { PoolBounds, PoolName } from "../pool-bounds.ts";
import type { PoolGate } from "../pool-gate.ts";
import type { SharedPlaces } from "../upstream-places.ts";
import { PoolSlots } from "./pool-slots.ts";
import { SlotSet, type Demand, type SlotSetTerms } from "./slot-set.ts";

export interface SharedSlotsOptions {
  readonly clock: Clock;
  readonly store: SlotStore;
}

/** The pools and upstreams whose slots are shared. */
export interface SlotUser {
  /** The part of this process has changed. */
  partChanged(place: PoolName): void;
  /** What calls of this process hold and wait for; `upstream` is undefined for a pool. */
  partUse(place: PoolName): {
    readonly gate: PoolGate | undefined;
    readonly upstream: { readonly count: number; readonly waiting: number } | undefined;
  };
}

/** Well within the life of what is held. */
const beatMs = 2_000;
/** Each process may use this part of its share of an upstream's slots without asking. */
const freeParts = 8;

/**
 * The slots that this process has of pools and upstreams which several processes share. Within
 * them, its own queues and rules decide without a round trip.
 */
export class SharedSlots {
  readonly #options: SharedSlotsOptions;
  readonly #pools = new Map<string, PoolSlots>();
  readonly #upstreams = new Map<string, SlotSet>();
  /** How many slots of each upstream this process uses without asking. */
  readonly #free = new Map<string, number>();
  #user: SlotUser | undefined;
  #decided: boolean;
  #stopBeat: () => void = () => undefined;

  constructor(options: SharedSlotsOptions) {
    this.#options = options;
    this.#decided = options.store.decides;
    this.#plan();
  }

  /** Call before anything else. */
  attach(user: SlotUser): void {
    this.#user = user;
  }

  get processes(): number {
    return this.#options.store.processes;
  }

  ofPool(pool: Pool, whole: PoolBounds): PoolBounds {
    return this.#pool(pool.name).follow(whole);
  }

  ofUpstream(name: string, whole: number): number {
    const set = this.#upstream(name);
    const free = Math.floor(whole / (freeParts * this.processes));
    this.#free.set(name, free);
    set.limit = whole - this.processes * free;
    return free + set.places;
  }

  ofDraining(whole: number): number {
    return Math.floor(whole / this.processes);
  }

  at({ kind, name }: PoolName): SharedPlaces {
    const slots = kind === "pool" ? this.#pool(name) : this.#upstream(name);
    return {
      leaving: () => slots.leaving(),
      left: () => slots.left(),
      askMore: () => (slots instanceof SlotSet ? this.#askMore(slots) : undefined),
    };
  }

  #askMore(set: SlotSet): Promise<void> | undefined {
    this.#lookAtStore();
    set.plan();
    return set.ask();
  }

  /** Asks for what a call lacks; undefined when that is nothing, or asking is in vain. */
  recall(
    request: PlaceRequest,
    target: PlaceCandidate["target"],
    why: BusyPool,
  ): Promise<void> | undefined {
    if (why.busy !== "full" || why.retryAfterMs === Infinity) return undefined;
    // The call tries again with what the process may use now.
    if (this.#lookAtStore()) return Promise.resolve();
    const { upstream, pool } = target;
    const capacityClass = classAt(request, pool);
    const place: PoolName =
      pool === undefined ? { kind: "upstream", name: upstream } : { kind: "pool", name: pool };
    const lacking = pool === undefined ? [] : this.#pool(pool).lacking(request, capacityClass);
    if (capacityClass !== "provisioned") {
      const atUpstream = this.#upstream(upstream);
      if (!this.#hasFree(upstream) && !atUpstream.hasRoom) lacking.push(atUpstream);
    }
    // If it waits now, it is asked for again soon.
    for (const set of lacking) set.plan();
    // Others take their turns before a call without a guarantee, and ask on its behalf.
    if (capacityClass !== "provisioned" && this.#isQueued(place)) return undefined;
    const asked = lacking.map((set) => set.ask()).filter((asking) => asking !== undefined);
    return asked.length === 0 ? undefined : Promise.all(asked).then(() => undefined);
  }

  /** Gives everything back that no call uses. */
  async close(): Promise<void> {
    this.#stopBeat();
    await Promise.all(
      [...this.#pools.values(), ...this.#upstreams.values()].map((of) => of.close()),
    );
  }

  #plan(): void {
    this.#stopBeat = this.#options.clock.schedule(() => {
      for (const pool of this.#pools.values()) pool.beat();
      for (const set of this.#upstreams.values()) set.beat();
      this.#lookAtStore();
      this.#plan();
    }, beatMs);
  }

  /** What a process may use changes when the store begins or ceases to decide. */
  #lookAtStore(): boolean {
    const { decides } = this.#options.store;
    if (decides === this.#decided) return false;
    this.#decided = decides;
    for (const name of this.#pools.keys()) this.#user?.partChanged({ kind: "pool", name });
    for (const name of this.#upstreams.keys()) {
      this.#user?.partChanged({ kind: "upstream", name });
    }
    return true;
  }

  #hasFree(name: string): boolean {
    const { upstream } = this.#user?.partUse({ kind: "upstream", name }) ?? {};
    return (upstream?.count ?? 0) < (this.#free.get(name) ?? 0);
  }

  #isQueued(place: PoolName): boolean {
    return (this.#user?.partUse(place).gate?.gate.open.size ?? 0) > 0;
  }

  #pool(name: string): PoolSlots {
    let pool = this.#pools.get(name);
    if (pool === undefined) {
      const place: PoolName = { kind: "pool", name };
      pool = new PoolSlots({
        name,
        newSet: (own) => this.#newSet(place, own),
        use: () => this.#user?.partUse(place).gate,
      });
      this.#pools.set(name, pool);
    }
    return pool;
  }

  #upstream(name: string): SlotSet {
    let set = this.#upstreams.get(name);
    if (set === undefined) {
      const place: PoolName = { kind: "upstream", name };
      const demand = (): Demand => this.#demandAt(place);
      set = this.#newSet(place, { bound: `upstream ${name}`, demand, leastShare: 1 });
      this.#upstreams.set(name, set);
    }
    return set;
  }

  #newSet(place: PoolName, own: SlotSetTerms): SlotSet {
    const onChanged = (): void => this.#user?.partChanged(place);
    return new SlotSet({ ...this.#options, ...own, onChanged });
  }

  #demandAt(place: PoolName): Demand {
    const { gate, upstream } = this.#user?.partUse(place) ?? {};
    const queued = gate?.gate.open.size ?? 0;
    return {
      used: Math.max(0, (upstream?.count ?? 0) - (this.#free.get(place.name) ?? 0)),
      waiting: queued + (upstream?.waiting ?? 0),
    };
  }
}
