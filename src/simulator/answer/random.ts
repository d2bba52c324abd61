/** A hash that is the same on every machine and in every run. */
export function hashText(text: string, seed = 0): number {
  return Bun.hash.xxHash32(text, seed);
}

/** Repeatable random choices: the same seed makes the same choices (mulberry32). */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** A number in [0, 1). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  }

  /** A whole number between the two, inclusive. */
  integer(lowest: number, highest: number): number {
    return lowest + Math.floor(this.next() * (highest - lowest + 1));
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  pick<Item>(items: readonly [Item, ...Item[]]): Item {
    return items[this.integer(0, items.length - 1)] ?? items[0];
  }

  /** Like `pick`, for a list that may be empty. */
  pickAny<Item>(items: readonly Item[]): Item | undefined {
    return items.length === 0 ? undefined : items[this.integer(0, items.length - 1)];
  }
}
