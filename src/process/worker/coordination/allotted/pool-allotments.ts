import type { PlaceRequest } from "../../../../admission/capacity/place.ts";
import type { PoolBounds } from "../../../../admission/capacity/pool-bounds.ts";
import type { GateUse } from "../../../../admission/capacity/pool-places.ts";
import type { CapacityClass } from "../../../../domain/usage/usage.ts";
import type { AccountsSeen } from "./accounts-seen.ts";
import type { Allotment, Demand } from "./allotment.ts";
import type { Allotments } from "./allotments.ts";

export interface PoolAllotmentsOptions {
  readonly name: string;
  readonly all: Allotments;
  readonly use: () => GateUse | undefined;
  readonly accounts: AccountsSeen;
  readonly onMore: () => void;
}

/**
 * This process's places of a pool, of three sorts: those that units guarantee to a key, by key; the
 * rest; and how many of the rest may be held by calls without a guarantee. So no process ever gives
 * a place to others that a key is guaranteed.
 */
export class PoolAllotments {
  readonly #options: PoolAllotmentsOptions;
  readonly #own = new Map<string, Allotment>();
  #whole: PoolBounds | undefined;

  constructor(options: PoolAllotmentsOptions) {
    this.#options = options;
  }

  /** The bounds of this process, given those of all. */
  follow(whole: PoolBounds): PoolBounds {
    this.#whole = whole;
    if (whole.places === Infinity) return whole;
    const kept = whole.isOversold ? 0 : whole.keptPlaces;
    const { rest, open } = this;
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
  lacking({ keyId }: PlaceRequest, capacityClass: CapacityClass): Allotment[] {
    if (this.#whole === undefined || this.#whole.places === Infinity) return [];
    const { rest, open } = this;
    const lacking = rest.hasRoom ? [] : [rest];
    if (capacityClass !== "provisioned") return open.hasRoom ? lacking : [...lacking, open];
    const ownLimit = this.#ownLimit(keyId);
    if (ownLimit === 0) return lacking;
    const own = this.#ownOf(keyId);
    const mayGetOwn = own.places < ownLimit && !own.isPaused;
    return mayGetOwn ? [own] : lacking;
  }

  left(): void {
    if (this.#whole === undefined || this.#whole.places === Infinity) return;
    for (const own of this.#own.values()) own.left();
    this.rest.left();
    this.open.left();
  }

  /** Forgets keys that need no place. */
  beat(): void {
    this.#claimOwn();
    const { name, all } = this.#options;
    for (const [keyId, own] of this.#own) {
      if (!own.isUnused) continue;
      this.#own.delete(keyId);
      all.forget(boundOf(name, keyPart(keyId)));
    }
  }

  get rest(): Allotment {
    return this.#at("", () => this.#restDemand());
  }

  get open(): Allotment {
    return this.#at(" open", () => this.#openDemand());
  }

  /** A key's call may have taken one of the rest while its own places were with other processes. */
  #claimOwn(): void {
    for (const [keyId, held] of this.#options.use()?.places.keys ?? []) {
      if (this.#ownLimit(keyId) === 0) continue;
      const own = this.#ownOf(keyId);
      if (held > own.granted) own.look();
    }
  }

  #ownOf(keyId: string): Allotment {
    let own = this.#own.get(keyId);
    if (own === undefined) {
      own = this.#at(keyPart(keyId), () => this.#ownDemand(keyId));
      this.#own.set(keyId, own);
    }
    own.limit = this.#ownLimit(keyId);
    return own;
  }

  #at(part: string, demand: () => Demand): Allotment {
    const { name, all, onMore } = this.#options;
    return all.at(boundOf(name, part), { demand, onMore });
  }

  #ownLimit(keyId: string): number {
    const whole = this.#whole;
    return whole === undefined || whole.isOversold ? 0 : whole.ownPlaces(keyId);
  }

  #ownDemand(keyId: string): Demand {
    const { places, queue } = this.#options.use() ?? {};
    const held = places?.ofKey(keyId) ?? 0;
    const used = Math.min(held, this.#own.get(keyId)?.granted ?? 0);
    return {
      used,
      waiting: held - used + (queue?.provisionedKeys.get(keyId)?.size ?? 0),
      waitingFirst: 0,
      accounts: 1,
    };
  }

  /** Provisioned places beyond what is granted to their keys, and all open ones. */
  #restUsed(): number {
    const { places } = this.#options.use() ?? {};
    let used = places?.all ?? 0;
    for (const [keyId, own] of this.#own) {
      used -= Math.min(places?.ofKey(keyId) ?? 0, own.granted);
    }
    return used;
  }

  #restDemand(): Demand {
    const { queue } = this.#options.use() ?? {};
    const first = this.#waitingBeyondOwn();
    return {
      used: this.#restUsed(),
      waiting: first + waitingOpen(queue),
      waitingFirst: first,
      accounts: this.#options.accounts.count(queue?.accounts),
    };
  }

  #openDemand(): Demand {
    const { places, queue } = this.#options.use() ?? {};
    return {
      used: (places?.of("on-demand") ?? 0) + (places?.of("spillover") ?? 0),
      waiting: waitingOpen(queue),
      waitingFirst: 0,
      accounts: this.#options.accounts.count(queue?.accounts),
    };
  }

  /** Waiting calls within guarantees whose keys have no more places of their own. */
  #waitingBeyondOwn(): number {
    const { queue } = this.#options.use() ?? {};
    let waiting = 0;
    for (const [keyId, { size }] of queue?.provisionedKeys ?? []) {
      const own = this.#own.get(keyId);
      if (own === undefined || own.isShort || own.places >= this.#ownLimit(keyId)) waiting += size;
    }
    return waiting;
  }
}

function waitingOpen(queue: GateUse["queue"] | undefined): number {
  return queue === undefined ? 0 : queue.count("on-demand") + queue.count("spillover");
}

function boundOf(pool: string, part: string): string {
  return `pool ${pool}${part}`;
}

function keyPart(keyId: string): string {
  return ` key ${keyId}`;
}
