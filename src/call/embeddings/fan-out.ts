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
  /** Requests under way; more than the width for a while after it was narrowed. */
  #open = 0;
  #wasNarrowed = false;

  constructor(most: number) {
    this.#most = Math.max(1, most);
    this.#width = Math.min(firstWidth, this.#most);
  }

  get width(): number {
    return Math.floor(this.#width);
  }

  /** Sends one request. */
  async send(request: () => Promise<void>): Promise<void> {
    this.#open += 1;
    try {
      await request();
      const more = this.#wasNarrowed ? 1 / this.#width : 1;
      this.#width = Math.min(this.#most, this.#width + more);
    } finally {
      this.#open -= 1;
    }
  }

  /**
   * A request was throttled. Whether it was one of too many at once; if not, the target would
   * throttle any call.
   */
  throttled(): boolean {
    const open = this.#open + 1;
    if (open > this.#width) return true;
    this.#width = Math.max(1, open / 2);
    this.#wasNarrowed = true;
    return open > firstWidth;
  }
}
