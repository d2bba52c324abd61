/** What the turn of a call within a guarantee depends on. */
export interface GuaranteedWaiting {
  readonly keyId: string;
}

export interface LaneTurn<Item> {
  readonly heldBy: (keyId: string) => number;
  readonly mayEnter: (item: Item) => boolean;
}

/**
 * The queue of calls within guarantees: calls of a key are in order of arrival, and the key with
 * the fewest places for its units comes first, so that a key gets no more by sending more.
 */
export class ProvisionedLane<Item extends GuaranteedWaiting> {
  /** The key whose last call left longest ago comes first. */
  readonly #keys = new Map<string, Set<Item>>();
  /** A key's units of the pool. */
  readonly #unitsOf: (keyId: string) => number;
  #size = 0;

  constructor(unitsOf: (keyId: string) => number) {
    this.#unitsOf = unitsOf;
  }

  get size(): number {
    return this.#size;
  }

  /** The waiting calls of each key. */
  get keys(): ReadonlyMap<string, ReadonlySet<Item>> {
    return this.#keys;
  }

  has(keyId: string): boolean {
    return this.#keys.has(keyId);
  }

  /** Returns the call that is displaced, possibly the newcomer; undefined if all have room. */
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

  /** The next call that may enter; undefined if none may. */
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

  /** The youngest call of the key with most waiting for its units, if that is another key. */
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
