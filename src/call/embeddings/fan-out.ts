/** Requests at once that no target should mind. */
const firstWidth = 4;

/**
 * How many requests of one call a target gets at once: from few to as many as allowed, by one more
 * with each answer until the target throttles; then half as many, and slowly more again (Chiu and
 * Jain 1989, as in TCP, RFC 5681).
 */
export class FanOut {
  readonly #most: number;
  #width: number;
  #narrowed = 0;

  constructor(most: number) {
    this.#most = Math.max(1, most);
    this.#width = Math.min(firstWidth, this.#most);
  }

  get width(): number {
    return Math.floor(this.#width);
  }

  /** A request begins; the result is for `throttled`. */
  began(): number {
    return this.#narrowed;
  }

  answered(): void {
    const more = this.#narrowed === 0 ? 1 : 1 / this.#width;
    this.#width = Math.min(this.#most, this.#width + more);
  }

  /**
   * Whether the request was one of too many at once. If not, the target would throttle any call.
   * Requests that began before a narrowing say nothing about the width since then.
   */
  throttled(began: number): boolean {
    if (began !== this.#narrowed) return true;
    const isWide = this.#width >= 2 * firstWidth;
    this.#narrowed += 1;
    this.#width = Math.max(1, this.#width / 2);
    return isWide;
  }
}
