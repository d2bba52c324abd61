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
    return this.pickAny(items) ?? items[0];
  }

  pickAny<Item>(items: readonly Item[]): Item | undefined {
    return items.length === 0 ? undefined : items[this.integer(0, items.length - 1)];
  }
}

const wordWeight = 2;
const gramWeight = 1;
const gramLength = 3;

/**
 * A unit vector for a text. Each word and each sequence of three letters changes a few dimensions,
 * chosen by its hash, so texts that share words and spellings have similar vectors.
 */
export function textVector(text: string, dimensions: number): Float32Array<ArrayBuffer> {
  const vector = new Float32Array(dimensions);
  for (const [word] of text.toLowerCase().matchAll(/[\p{L}\p{N}]+/gu)) {
    addFeature(vector, `w:${word}`, wordWeight);
    const padded = ` ${word} `;
    for (let start = 0; start + gramLength <= padded.length; start++) {
      addFeature(vector, padded.slice(start, start + gramLength), gramWeight);
    }
  }
  return normalised(vector, text);
}

const changesPerFeature = 4;

function addFeature(vector: Float32Array, feature: string, weight: number): void {
  for (let change = 0; change < changesPerFeature; change++) {
    const hash = hashText(feature, change);
    const place = (hash >>> 1) % vector.length;
    vector[place] = (vector[place] ?? 0) + ((hash & 1) === 0 ? weight : -weight);
  }
}

function normalised(vector: Float32Array<ArrayBuffer>, text: string): Float32Array<ArrayBuffer> {
  const length = lengthOf(vector);
  if (length === 0) {
    // A text that consists of punctuation has no features, but needs a unit vector too.
    vector[hashText(text) % vector.length] = 1;
    return vector;
  }
  for (let place = 0; place < vector.length; place++) vector[place] = (vector[place] ?? 0) / length;
  return vector;
}

function lengthOf(vector: Float32Array): number {
  let total = 0;
  for (const value of vector) total += value * value;
  return Math.sqrt(total);
}
