/** The most events within any period of this length; it begins and ends at any time. */
export class SlidingWorst {
  readonly #periodMs: number;
  readonly #times: number[] = [];
  #first = 0;
  #worst = 0;

  constructor(periodMs: number) {
    this.#periodMs = periodMs;
  }

  get worst(): number {
    return this.#worst;
  }

  /** Events in the period that ends now. */
  countAt(now: number): number {
    while ((this.#times[this.#first] ?? Infinity) <= now - this.#periodMs) this.#first += 1;
    return this.#times.length - this.#first;
  }

  add(now: number): void {
    this.#times.push(now);
    this.#worst = Math.max(this.#worst, this.countAt(now));
  }
}
