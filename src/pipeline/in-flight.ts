/** Counts what runs at once, up to a limit. */
export class InFlight {
  readonly #limit: number;
  #count = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get count(): number {
    return this.#count;
  }

  /** Takes a place; false when there is none. Whoever took one must leave it once. */
  tryEnter(): boolean {
    if (this.#count >= this.#limit) return false;
    this.#count += 1;
    return true;
  }

  leave(): void {
    this.#count -= 1;
  }
}
