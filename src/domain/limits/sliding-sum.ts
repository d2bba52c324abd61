/**
 * What was added in the latest slots of time, and its sum. Slots are numbered by whoever decides how
 * long they are: `advance` to the one in progress first, then ask or add.
 */
export class SlidingSum {
  /** One element more than slots are kept; the size is a power of two, so an index is a bit mask. */
  #amounts: Float64Array;
  #slot: number;
  #counted: number;
  /** Slots that can still be changed: as many as were ever counted. */
  #kept: number;
  #sum = 0;

  /** `counted`: the slot in progress and those before it. */
  constructor(counted: number, slot = Number.NEGATIVE_INFINITY) {
    this.#amounts = amountsFor(counted);
    this.#slot = slot;
    this.#counted = counted;
    this.#kept = counted;
  }

  /** Of all slots that count. */
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
  get oldestKept(): number {
    return this.#slot - this.#kept + 1;
  }

  /** Drops what no longer counts at `slot`. Never goes back to an earlier slot. */
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

  /** In the slot in progress. */
  add(amount: number): void {
    this.#put(this.#slot, amount);
    this.#sum += amount;
  }

  /** In a slot that becomes the one in progress, unless a later one is. */
  addAt(slot: number, amount: number): void {
    this.advance(slot);
    this.add(amount);
  }

  sumAt(slot: number): number {
    this.advance(slot);
    return this.#sum;
  }

  /** In a slot that may be over. False, and nothing done, when it is too old or yet to come. */
  change(slot: number, difference: number): boolean {
    if (slot > this.#slot || slot < this.oldestKept) return false;
    this.#put(slot, difference);
    if (this.counts(slot)) this.#sum += difference;
    return true;
  }

  /** What a slot that is kept holds; 0 for others. */
  at(slot: number): number {
    return slot > this.#slot || slot < this.oldestKept ? 0 : this.#at(slot);
  }

  counts(slot: number): boolean {
    return slot <= this.#slot && slot > this.#slot - this.#counted;
  }

  /** Counts another number of slots from now on, those too that a smaller number left out. */
  count(counted: number): void {
    if (counted > this.#kept) this.#keep(counted);
    this.#counted = counted;
    this.#sum = 0;
    for (let slot = this.#slot - counted + 1; slot <= this.#slot; slot++) {
      this.#sum += this.#at(slot);
    }
  }

  /** The first slot with which at least so much will have left; the newest if there is no such. */
  slotFreeing(amount: number): number {
    let left = amount;
    let slot = this.#slot - this.#counted;
    while (slot < this.#slot && left > 0) left -= this.#at(++slot);
    return slot;
  }

  /** The newest slot that holds anything; the oldest if none does. */
  get newestUsed(): number {
    const oldest = this.#slot - this.#counted + 1;
    let slot = this.#slot;
    while (slot > oldest && this.#at(slot) === 0) slot--;
    return slot;
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

  /** One that keeps as many slots, and holds nothing. */
  emptyCopy(): SlidingSum {
    const copy = new SlidingSum(this.#kept, this.#slot);
    copy.#counted = this.#counted;
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
