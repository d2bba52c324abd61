/** Who waits within a guarantee: what its turn depends on. */
export interface GuaranteedWaiting {
  readonly keyId: string;
}

export interface LaneTurn<Item> {
  readonly heldBy: (keyId: string) => number;
  readonly mayEnter: (item: Item) => boolean;
}

/**
 * Those who wait within a guarantee: in the order in which they came within one key, and among keys
 * the one first that has the fewest places for its units, so that a key gets no more by sending more.
 */
export class ProvisionedLane<Item extends GuaranteedWaiting> {
  /** The key of which one went longest ago comes first. */
  readonly #keys = new Map<string, Set<Item>>();
  /** Of the pool, that a key has. */
  readonly #unitsOf: (keyId: string) => number;
  #size = 0;

  constructor(unitsOf: (keyId: string) => number) {
    this.#unitsOf = unitsOf;
  }

  get size(): number {
    return this.#size;
  }

  has(keyId: string): boolean {
    return this.#keys.has(keyId);
  }

  /** Returns who has to go for it, which may be the newcomer itself; undefined: all have room. */
  add(item: Item, limit: number): Item | undefined {
    let displaced: Item | undefined;
    if (this.#size >= limit) {
      displaced = this.#leastOf(item);
      if (displaced === undefined) return item;
      this.remove(displaced);
    }
    const items = this.#keys.get(item.keyId);
    if (items === undefined) this.#keys.set(item.keyId, new Set([item]));
    else items.add(item);
    this.#size += 1;
    return displaced;
  }

  remove(item: Item): boolean {
    const items = this.#keys.get(item.keyId);
    if (items === undefined || !items.delete(item)) return false;
    this.#size -= 1;
    this.#keys.delete(item.keyId);
    if (items.size > 0) this.#keys.set(item.keyId, items);
    return true;
  }

  /** Whose turn it is of those who may enter; undefined: nobody may. */
  next({ heldBy, mayEnter }: LaneTurn<Item>): Item | undefined {
    let next: Item | undefined;
    let least = Infinity;
    for (const [keyId, items] of this.#keys) {
      const [first] = items;
      if (first === undefined) continue;
      const load = this.#perUnit(heldBy(keyId), keyId);
      if ((next === undefined || load < least) && mayEnter(first)) [next, least] = [first, load];
    }
    return next;
  }

  /** The youngest of the key that has most waiting for its units, if that is another's. */
  #leastOf({ keyId: newKeyId }: Item): Item | undefined {
    let most = this.#perUnit((this.#keys.get(newKeyId)?.size ?? 0) + 1, newKeyId);
    let least: Item | undefined;
    for (const [keyId, items] of this.#keys) {
      const load = this.#perUnit(items.size, keyId);
      if (keyId !== newKeyId && load > most) [most, least] = [load, [...items].at(-1)];
    }
    return least;
  }

  #perUnit(count: number, keyId: string): number {
    const units = this.#unitsOf(keyId);
    return units > 0 ? count / units : Infinity;
  }
}
