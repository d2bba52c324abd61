const secondMs = 1_000;

/** How many things happened in the last seconds, the one in progress included. */
export class SecondsRing {
  readonly #counts: Uint32Array;
  #second = Number.NEGATIVE_INFINITY;
  #sum = 0;

  constructor(seconds: number) {
    this.#counts = new Uint32Array(seconds);
  }

  add(nowMs: number): void {
    this.#advance(nowMs);
    const place = this.#second % this.#counts.length;
    this.#counts[place] = (this.#counts[place] ?? 0) + 1;
    this.#sum += 1;
  }

  sum(nowMs: number): number {
    this.#advance(nowMs);
    return this.#sum;
  }

  clear(): void {
    this.#counts.fill(0);
    this.#sum = 0;
  }

  /** Forgets the seconds that are too old; at most all places once. */
  #advance(nowMs: number): void {
    const second = Math.floor(nowMs / secondMs);
    const previous = this.#second;
    if (second <= previous) return;
    this.#second = second;
    if (this.#sum === 0) return;
    const { length } = this.#counts;
    if (second - previous >= length) {
      this.clear();
      return;
    }
    for (let passed = previous + 1; passed <= second; passed += 1) {
      const place = passed % length;
      this.#sum -= this.#counts[place] ?? 0;
      this.#counts[place] = 0;
    }
  }
}
