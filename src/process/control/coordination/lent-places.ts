export interface LentPlacesOptions {
  readonly workers: number;
  /** The places of a pool or upstream. */
  readonly limitOf: (name: string) => number;
  readonly onChanged: (name: string, lent: number) => void;
}

/** Parts of a limit by which what is told grows, so that it is not told with each place. */
const steps = 16;

/**
 * How many places of each pool, or upstream, workers hold beyond their shares. All workers are told
 * before such a place is given: without control each gives that many less of its own share, so that
 * together they never hold more than there are.
 */
export class LentPlaces {
  readonly #options: LentPlacesOptions;
  readonly #lent = new Map<string, number>();
  readonly #told = new Map<string, number>();

  constructor(options: LentPlacesOptions) {
    this.#options = options;
  }

  /** What was told last. */
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
  /** Beyond the worker's share. */
  lent: number;
}

/** What one worker holds. */
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
