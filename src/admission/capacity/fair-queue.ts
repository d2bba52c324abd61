import type { CapacityClass } from "../../domain/usage/usage.ts";

/** What the turn of a waiting call depends on. */
export interface Waiting {
  readonly capacityClass: CapacityClass;
  readonly keyId: string;
  readonly accountId: string;
}

/**
 * The calls that wait at a pool: those within guarantees, by key, and all others, by account. Both
 * lanes have the same limit.
 */
export class FairQueue<Item extends Waiting> {
  readonly provisioned: Lane<Item>;
  readonly open: Lane<Item>;

  /** `unitsOf`: a key's units of the pool. */
  constructor(limit: () => number, unitsOf: (keyId: string) => number) {
    this.provisioned = new Lane({ limit, groupOf: ({ keyId }) => keyId, weightOf: unitsOf });
    this.open = new Lane({ limit, groupOf: ({ accountId }) => accountId, weightOf: () => 1 });
  }

  laneOf({ capacityClass }: Pick<Waiting, "capacityClass">): Lane<Item> {
    return capacityClass === "provisioned" ? this.provisioned : this.open;
  }

  count(capacityClass: CapacityClass): number {
    if (capacityClass === "provisioned") return this.provisioned.size;
    const { size, spilled } = this.open;
    return capacityClass === "spillover" ? spilled : size - spilled;
  }

  /** How many calls would wait ahead of a newcomer, in order of arrival. */
  countBefore(capacityClass: CapacityClass): number {
    return this.provisioned.size + (capacityClass === "provisioned" ? 0 : this.open.size);
  }
}

export interface LaneOptions<Item> {
  /** Most calls that wait. */
  readonly limit: () => number;
  readonly groupOf: (item: Item) => string;
  /** A group with twice the weight gets twice as much. */
  readonly weightOf: (group: string) => number;
}

/**
 * Waiting calls whose groups take turns: the one that was served longest ago comes first, so that a
 * group gets no more by sending more. Calls of a group are in order of arrival.
 */
export class Lane<Item extends Waiting> {
  readonly #options: LaneOptions<Item>;
  /** The next in turn first. */
  readonly #groups = new Map<string, Set<Item>>();
  #size = 0;
  #spilled = 0;

  constructor(options: LaneOptions<Item>) {
    this.#options = options;
  }

  get size(): number {
    return this.#size;
  }

  /** How many of them are of the class `spillover`. */
  get spilled(): number {
    return this.#spilled;
  }

  get groups(): ReadonlyMap<string, { readonly size: number }> {
    return this.#groups;
  }

  /** Returns the call that is displaced, possibly the newcomer; undefined if all have room. */
  add(item: Item): Item | undefined {
    let displaced: Item | undefined;
    if (this.#size >= this.#options.limit()) {
      displaced = this.#leastOf(item);
      if (displaced === undefined) return item;
      this.remove(displaced);
    }
    const group = this.#options.groupOf(item);
    const items = this.#groups.get(group);
    if (items === undefined) this.#groups.set(group, new Set([item]));
    else items.add(item);
    this.#count(item, 1);
    return displaced;
  }

  /** Removes a call that leaves without being served. */
  remove(item: Item): boolean {
    const group = this.#options.groupOf(item);
    const items = this.#groups.get(group);
    if (items === undefined || !items.delete(item)) return false;
    if (items.size === 0) this.#groups.delete(group);
    this.#count(item, -1);
    return true;
  }

  /** The call got a place, and the turn of its group is over. */
  served(item: Item): void {
    const group = this.#options.groupOf(item);
    if (!this.remove(item)) return;
    const rest = this.#groups.get(group);
    if (rest === undefined) return;
    this.#groups.delete(group);
    this.#groups.set(group, rest);
  }

  /** Of the first calls of all groups, the next in turn for which `holds` is true. */
  find(holds: (item: Item) => boolean): Item | undefined {
    for (const [first] of this.#groups.values()) {
      if (first !== undefined && holds(first)) return first;
    }
    return undefined;
  }

  /** As `find`, of all calls. */
  findAny(holds: (item: Item) => boolean): Item | undefined {
    for (const items of this.#groups.values()) {
      for (const item of items) if (holds(item)) return item;
    }
    return undefined;
  }

  /** As `find`, but the group that has least for its weight comes first. */
  findLeast(heldBy: (group: string) => number, holds: (item: Item) => boolean): Item | undefined {
    let next: Item | undefined;
    let least = Infinity;
    for (const [group, [first]] of this.#groups) {
      if (first === undefined) continue;
      const load = this.#loadOf(group, heldBy(group));
      if ((next === undefined || load < least) && holds(first)) [next, least] = [first, load];
    }
    return next;
  }

  /**
   * The call to displace: of spilled calls if there are any, the youngest of the group with most
   * waiting for its weight. Undefined: the newcomer itself.
   */
  #leastOf(newcomer: Item): Item | undefined {
    const isAboutSpilled = this.#spilled > 0;
    if (isSpilled(newcomer) && !isAboutSpilled) return undefined;
    const isCounted = (item: Item): boolean => !isAboutSpilled || isSpilled(item);
    const countIn = (items: Iterable<Item> & { readonly size: number }): number => {
      if (!isAboutSpilled) return items.size;
      let count = 0;
      for (const item of items) if (isSpilled(item)) count += 1;
      return count;
    };
    const own = this.#options.groupOf(newcomer);
    const ownCount = countIn(this.#groups.get(own) ?? new Set());
    let most = isCounted(newcomer) ? this.#loadOf(own, ownCount + 1) : 0;
    let largest: Iterable<Item> = [];
    for (const [group, items] of this.#groups) {
      const load = this.#loadOf(group, countIn(items));
      if (load > most) [most, largest] = [load, items];
    }
    return [...largest].findLast(isCounted);
  }

  #loadOf(group: string, count: number): number {
    const weight = this.#options.weightOf(group);
    return weight > 0 ? count / weight : Infinity;
  }

  #count(item: Item, more: number): void {
    this.#size += more;
    if (isSpilled(item)) this.#spilled += more;
  }
}

function isSpilled({ capacityClass }: Waiting): boolean {
  return capacityClass === "spillover";
}
