import type { Clock } from "../../../../domain/clock.ts";
import type { AllotmentStore } from "../../../../store/allotments.ts";
import { partOf } from "../../part-of-config.ts";
import { Allotment, type Demand } from "./allotment.ts";

export interface AllotmentsOptions {
  readonly clock: Clock;
  readonly store: AllotmentStore;
  /** Called between two beats, before allotments are prolonged. */
  readonly onBeat: () => void;
}

/** What a bound is for. */
export interface BoundUse {
  readonly demand: () => Demand;
  readonly onChanged: () => void;
}

/** Time between two looks at the queues, which news may have missed. */
const lookMs = 500;
/** Looks between two beats. */
const looksPerBeat = 4;

/** All bounds of this process. */
export class Allotments {
  readonly #options: AllotmentsOptions;
  readonly #all = new Map<string, Allotment>();
  #looks = 0;
  #sequence = 0;
  #cancel: () => void = () => undefined;
  #isClosed = false;

  constructor(options: AllotmentsOptions) {
    const { store } = options;
    this.#options = options;
    store.onNews(({ bound, is }) => {
      const allotment = this.#all.get(bound);
      allotment?.[is]();
    });
    store.onChange(() => {
      for (const allotment of this.#all.values()) allotment.storeChanged();
    });
    this.#plan();
  }

  /** The allotment of a bound. */
  at(bound: string, use: BoundUse): Allotment {
    const known = this.#all.get(bound);
    if (known !== undefined) return known;
    const { clock, store } = this.#options;
    const nextSequence = (): number => (this.#sequence += 1);
    const allotment = new Allotment({ clock, store, bound, nextSequence, ...use });
    this.#all.set(bound, allotment);
    return allotment;
  }

  /** For a bound that is not used any more. */
  forget(bound: string): void {
    this.#all.delete(bound);
  }

  /** This process's part of a limit; the parts of all add up to it. */
  shareOf(limit: number): number {
    return partOf(limit, this.#options.store.rank);
  }

  get processes(): number {
    return this.#options.store.rank.workers;
  }

  /** Gives everything back. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancel();
    await Promise.all(Array.from(this.#all.values(), (allotment) => allotment.close()));
    this.#options.store.close();
  }

  #plan(): void {
    this.#cancel = this.#options.clock.schedule(() => {
      this.#looks = (this.#looks + 1) % looksPerBeat;
      if (this.#looks === 0) this.#beat();
      else for (const allotment of this.#all.values()) allotment.look();
      this.#plan();
    }, lookMs);
  }

  #beat(): void {
    if (this.#isClosed) return;
    this.#options.onBeat();
    for (const allotment of this.#all.values()) void allotment.beat();
  }
}
