import type { PoolName } from "./pool-bounds.ts";

/** Where several processes share the places of an upstream. */
interface SharedPlaces {
  readonly place: PoolName;
  readonly slots: {
    askMore(upstream: string): Promise<void> | undefined;
    leaving(place: PoolName): void;
    left(place: PoolName): void;
  };
}

/**
 * The places of an upstream: requests under way at once, up to a limit that a reload may change.
 * Calls wait in the queues of pools; callbacks are called here when a place is free.
 */
export class UpstreamPlaces {
  #limit: number;
  #count = 0;
  /** Called when a place is free, in order of arrival. */
  readonly #waiting = new Set<() => void>();
  readonly #shared: SharedPlaces | undefined;

  constructor(limit: number, shared?: SharedPlaces) {
    this.#limit = limit;
    this.#shared = shared;
  }

  get limit(): number {
    return this.#limit;
  }

  set limit(limit: number) {
    this.#limit = limit;
    this.#lookAgain();
  }

  get count(): number {
    return this.#count;
  }

  get free(): number {
    return Math.max(0, this.#limit - this.#count);
  }

  /** Those that wait for a place. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** Resolves when there may be more than before; undefined: no other process has any. */
  askMore(): Promise<void> | undefined {
    return this.#shared?.slots.askMore(this.#shared.place.name);
  }

  /** False when there is none. Each that was taken must be given back once. */
  tryTake(): boolean {
    if (this.free === 0) return false;
    this.#count += 1;
    return true;
  }

  /** For calls within guarantees and probes, to which the limit does not apply. */
  take(): void {
    this.#count += 1;
  }

  giveBack(): void {
    this.#count -= 1;
    this.#shared?.slots.leaving(this.#shared.place);
    this.#lookAgain();
    this.#shared?.slots.left(this.#shared.place);
  }

  /** Calls `look` once when a place is free, unless `forget` is called before. */
  whenFree(look: () => void): void {
    this.#waiting.add(look);
    void this.askMore();
  }

  forget(look: () => void): void {
    this.#waiting.delete(look);
  }

  #lookAgain(): void {
    // A callback that cannot use the place waits again, behind the others.
    for (let looks = this.#waiting.size; looks > 0 && this.free > 0; looks -= 1) {
      const [look] = this.#waiting;
      if (look === undefined) return;
      this.#waiting.delete(look);
      look();
    }
  }
}
