export interface LentPlacesOptions {
  readonly workers: number;
  /** The number of places of a pool or upstream. */
  readonly limitOf: (name: string) => number;
  readonly onChanged: (name: string, lent: number) => void;
}

/** Reports grow in steps of a limit divided by this, so that not every place needs a report. */
const steps = 16;

/**
 * How many places of each pool or upstream workers hold beyond their shares. All workers learn of
 * it before such a place is given: without control, each gives that many fewer of its own share, so
 * that together they never hold more places than there are.
 */
export class LentPlaces {
  readonly #options: LentPlacesOptions;
  readonly #lent = new Map<string, number>();
  readonly #told = new Map<string, number>();

  constructor(options: LentPlacesOptions) {
    this.#options = options;
  }

  /** What was last reported. */
  get told(): ReadonlyMap<string, number> {
    return this.#told;
  }

  /** The counts of one worker. */
  ofWorker(): WorkerCount {
    return new WorkerCount(this.#options, (name, change) => this.#change(name, change));
  }

  #change(name: string, change: number): void {
    const lent = (this.#lent.get(name) ?? 0) + change;
    this.#lent.set(name, lent);
    const told = this.#told.get(name) ?? 0;
    const step = Math.floor(this.#options.limitOf(name) / steps);
    if (lent > told) this.#tell(name, lent + step);
    else if (lent === 0 || lent + 2 * step < told) this.#tell(name, lent);
  }

  #tell(name: string, lent: number): void {
    this.#told.set(name, lent);
    this.#options.onChanged(name, lent);
  }
}

interface Count {
  held: number;
  /** Places beyond the worker's share. */
  lent: number;
}

/** The places that one worker holds. */
export class WorkerCount {
  readonly #options: Pick<LentPlacesOptions, "workers" | "limitOf">;
  readonly #onLent: (name: string, change: number) => void;
  readonly #counts = new Map<string, Count>();

  constructor(
    options: Pick<LentPlacesOptions, "workers" | "limitOf">,
    onLent: (name: string, change: number) => void,
  ) {
    this.#options = options;
    this.#onLent = onLent;
  }

  add(name: string, change: number): void {
    let count = this.#counts.get(name);
    if (count === undefined) this.#counts.set(name, (count = { held: 0, lent: 0 }));
    count.held += change;
    const { workers, limitOf } = this.#options;
    const limit = limitOf(name);
    const lent = limit === Infinity ? 0 : Math.max(0, count.held - Math.floor(limit / workers));
    if (lent === count.lent) return;
    const more = lent - count.lent;
    count.lent = lent;
    this.#onLent(name, more);
  }
}
