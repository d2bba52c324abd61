/** Counts what runs at once, up to a limit that a reload may change. */
export class InFlight {
  limit: number;
  #count = 0;

  constructor(limit: number) {
    this.limit = limit;
  }

  get count(): number {
    return this.#count;
  }

  get free(): number {
    return Math.max(0, this.limit - this.#count);
  }

  /** Takes a place; false when there is none. Whoever took one must leave it once. */
  tryEnter(): boolean {
    if (this.free === 0) return false;
    this.#count += 1;
    return true;
  }

  leave(): void {
    this.#count -= 1;
  }
}

const pollMs = 20;
const settleTimeoutMs = 2_000;

/**
 * Waits, for some seconds at most, until nothing runs. A call whose caller was cut ends its attempt
 * and closes its account in the same turn.
 */
export async function untilFree(all: () => readonly InFlight[]): Promise<void> {
  const deadline = performance.now() + settleTimeoutMs;
  do await Bun.sleep(pollMs);
  while (all().some(({ count }) => count > 0) && performance.now() < deadline);
}
