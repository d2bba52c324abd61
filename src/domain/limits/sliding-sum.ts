/** Amounts of slots in a row, of which `slot` is the first. */
export interface SlotAmounts {
  readonly slot: number;
  readonly amounts: number[];
}

/**
 * Amounts of the latest slots of time, and their sum. The caller defines the length of slots and
 * numbers them: call `advance` with the current slot before anything else.
 */
export class SlidingSum {
  /** One more than the kept slots, and a power of two, so that a mask finds an index. */
  #amounts: Float64Array;
  #slot: number;
  #counted: number;
  /** Number of slots that can still be changed: the most ever counted. */
  #kept: number;
  #sum = 0;

  /** `counted`: number of slots, including the current one. */
  constructor(counted: number, slot = Number.NEGATIVE_INFINITY) {
    this.#amounts = amountsFor(counted);
    this.#slot = slot;
    this.#counted = counted;
    this.#kept = counted;
  }

  /** The sum of all counted slots. */
  get sum(): number {
    return this.#sum;
  }

  get slot(): number {
    return this.#slot;
  }

  get counted(): number {
    return this.#counted;
  }

  /** The oldest slot that can still be changed. */
  get #oldestKept(): number {
    return this.#slot - this.#kept + 1;
  }

  /** Drops slots that do not count at `slot`. Never goes back to an earlier slot. */
  advance(slot: number): void {
    if (slot - this.#slot >= this.#amounts.length) {
      this.#slot = slot;
      this.clear();
    }
    while (this.#slot < slot) {
      this.#slot += 1;
      this.#sum -= this.#at(this.#slot - this.#counted);
      this.#amounts[this.#indexOf(this.#slot)] = 0;
    }
  }

  /** Adds to the current slot. */
  add(amount: number): void {
    this.#put(this.#slot, amount);
    this.#sum += amount;
  }

  /** Adds to a slot, which becomes the current one unless a later one is. */
  addAt(slot: number, amount: number): void {
    this.advance(slot);
    this.add(amount);
  }

  sumAt(slot: number): number {
    this.advance(slot);
    return this.#sum;
  }

  /** Changes a past slot. False, without an effect, when it is too old or in the future. */
  change(slot: number, difference: number): boolean {
    if (slot > this.#slot || slot < this.#oldestKept) return false;
    this.#put(slot, difference);
    if (this.counts(slot)) this.#sum += difference;
    return true;
  }

  /** The amount of a kept slot; 0 for others. */
  at(slot: number): number {
    return slot > this.#slot || slot < this.#oldestKept ? 0 : this.#at(slot);
  }

  counts(slot: number): boolean {
    return slot <= this.#slot && slot > this.#slot - this.#counted;
  }

  /** Changes the number of counted slots; kept ones may count again. */
  count(counted: number): void {
    if (counted > this.#kept) this.#keep(counted);
    this.#counted = counted;
    this.#sum = 0;
    for (let slot = this.#slot - counted + 1; slot <= this.#slot; slot++) {
      this.#sum += this.#at(slot);
    }
  }

  /** The first slot by whose expiry at least this amount has expired, or else the newest. */
  slotFreeing(amount: number): number {
    let left = amount;
    let slot = this.#slot - this.#counted;
    while (slot < this.#slot && left > 0) left -= this.#at(++slot);
    return slot;
  }

  /** The newest non-empty slot; the oldest if all are empty. */
  get newestUsed(): number {
    const oldest = this.#slot - this.#counted + 1;
    let slot = this.#slot;
    while (slot > oldest && this.#at(slot) === 0) slot--;
    return slot;
  }

  /** The counted amounts, from the first slot that has one to the last. */
  get used(): SlotAmounts {
    let slot = this.#slot - this.#counted + 1;
    while (slot < this.#slot && this.#at(slot) === 0) slot++;
    const amounts: number[] = [];
    for (let last = this.newestUsed, each = slot; each <= last; each++) {
      amounts.push(this.#at(each));
    }
    return { slot, amounts };
  }

  clear(): void {
    this.#amounts.fill(0);
    this.#sum = 0;
  }

  copy(): SlidingSum {
    const copy = new SlidingSum(this.#counted, this.#slot);
    copy.#amounts = this.#amounts.slice();
    copy.#kept = this.#kept;
    copy.#sum = this.#sum;
    return copy;
  }

  #keep(slots: number): void {
    const before = this.#amounts;
    const grown = amountsFor(slots);
    this.#kept = slots;
    if (grown.length <= before.length) return;
    for (let slot = this.#slot - before.length + 1; slot <= this.#slot; slot++) {
      grown[slot & (grown.length - 1)] = this.#at(slot);
    }
    this.#amounts = grown;
  }

  #put(slot: number, amount: number): void {
    this.#amounts[this.#indexOf(slot)] = this.#at(slot) + amount;
  }

  #at(slot: number): number {
    return this.#amounts[this.#indexOf(slot)] ?? 0;
  }

  #indexOf(slot: number): number {
    return slot & (this.#amounts.length - 1);
  }
}

function amountsFor(slots: number): Float64Array {
  return new Float64Array(2 ** (Math.floor(Math.log2(slots)) + 1));
}
