/** What each of the latest slots has counted. The size is a power of two, so a place is a bit mask. */
export class SlotRing {
  readonly requests: Int32Array;
  readonly tokens: Float64Array;
  /** Of the tokens, those charged after the admission of their call. */
  readonly added: Float64Array;
  readonly mask: number;

  /** Has a place for one slot more than `slots`, so that the one that begins takes no other's. */
  constructor(slots: number) {
    const size = 2 ** (Math.floor(Math.log2(slots)) + 1);
    this.requests = new Int32Array(size);
    this.tokens = new Float64Array(size);
    this.added = new Float64Array(size);
    this.mask = size - 1;
  }

  /** One with room for so many slots and the same content; `slot` is the newest. */
  grownTo(slots: number, slot: number): SlotRing {
    const grown = new SlotRing(slots);
    if (grown.mask <= this.mask) return this;
    for (let each = slot - this.mask; each <= slot; each++) {
      const [from, to] = [each & this.mask, each & grown.mask];
      grown.requests[to] = this.requests[from] ?? 0;
      grown.tokens[to] = this.tokens[from] ?? 0;
      grown.added[to] = this.added[from] ?? 0;
    }
    return grown;
  }

  copy(): SlotRing {
    const copy = new SlotRing(this.mask);
    copy.requests.set(this.requests);
    copy.tokens.set(this.tokens);
    copy.added.set(this.added);
    return copy;
  }

  empty(slot: number): void {
    const place = slot & this.mask;
    this.requests[place] = 0;
    this.tokens[place] = 0;
    this.added[place] = 0;
  }

  clear(): void {
    this.requests.fill(0);
    this.tokens.fill(0);
    this.added.fill(0);
  }
}
