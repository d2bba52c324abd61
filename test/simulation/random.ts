/** Numbers that depend only on a seed: xoshiro128**, seeded by splitmix32. */
export class Random {
  readonly #seed: number;
  readonly #state: Uint32Array;

  constructor(seed: number) {
    this.#seed = seed >>> 0;
    let mixed = this.#seed;
    this.#state = Uint32Array.from({ length: 4 }, () => {
      mixed = (mixed + 0x9e3779b9) >>> 0;
      return mix(mixed);
    });
  }

  /** Another stream, which depends only on its name and this stream's seed. */
  fork(name: string): Random {
    let hash = this.#seed ^ 0x811c9dc5;
    for (let index = 0; index < name.length; index += 1) {
      hash = Math.imul(hash ^ name.charCodeAt(index), 0x01000193);
    }
    return new Random(mix(hash >>> 0));
  }

  /** A number in [0, 1). */
  readonly next = (): number => {
    const state = this.#state;
    const [first = 0, second = 0, third = 0, fourth = 0] = state;
    const result = Math.imul(rotate(Math.imul(second, 5) >>> 0, 7), 9) >>> 0;
    state[2] = third ^ first;
    state[3] = fourth ^ second;
    state[1] = second ^ (state[2] ?? 0);
    state[0] = first ^ (state[3] ?? 0);
    state[2] = (state[2] ?? 0) ^ (second << 9);
    state[3] = rotate(state[3] ?? 0, 11);
    return result / 2 ** 32;
  };

  /** A whole number, inclusive. */
  whole(least: number, most: number): number {
    return least + Math.floor(this.next() * (most - least + 1));
  }

  /** A number of a range, rounded to hundredths to be readable in a trace. */
  number(least: number, most: number): number {
    return Math.round((least + this.next() * (most - least)) * 100) / 100;
  }

  chance(share: number): boolean {
    return this.next() < share;
  }

  pick<Item>(items: readonly Item[]): Item {
    const item = items[Math.floor(this.next() * items.length)];
    if (item === undefined) throw new RangeError("nothing to pick from");
    return item;
  }

  /** One of the names, by their weights. */
  weighted<Name extends string>(weights: Readonly<Partial<Record<Name, number>>>): Name {
    const entries = Object.entries<number | undefined>(weights) as [Name, number][];
    const sum = entries.reduce((total, [, weight]) => total + weight, 0);
    let rest = this.next() * sum;
    for (const [name, weight] of entries) {
      rest -= weight;
      if (rest < 0) return name;
    }
    const [first] = entries;
    if (first === undefined) throw new RangeError("nothing to pick from");
    return first[0];
  }
}

export function times<Item>(count: number, make: (index: number) => Item): readonly Item[] {
  return Array.from({ length: count }, (_, index) => make(index));
}

function mix(value: number): number {
  let mixed = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}

function rotate(value: number, bits: number): number {
  return ((value << bits) | (value >>> (32 - bits))) >>> 0;
}
