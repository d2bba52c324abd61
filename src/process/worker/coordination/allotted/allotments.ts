import type { Clock } from "../../../../domain/clock.ts";
import type { AllotmentStore } from "../../../../store/allotments.ts";
import { partOf } from "../places/worker-share.ts";
import { Allotment, type Demand } from "./allotment.ts";

export interface AllotmentsOptions {
  readonly clock: Clock;
  readonly store: AllotmentStore;
  /** Those of this gateway, which are known before the first answer. */
  readonly fewestProcesses: number;
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
  /** Processes that shared the bounds when this was last known, sorted. */
  #processes: readonly string[];
  #looks = 0;
  #sequence = 0;
  #cancel: () => void = () => undefined;
  #isClosed = false;

  constructor(options: AllotmentsOptions) {
    const { store } = options;
    this.#options = options;
    this.#processes = [store.process];
    store.onNews(({ bound, is }) => {
      const allotment = this.#all.get(bound);
      if (is === "wanted") allotment?.wanted();
      else allotment?.free();
    });
    store.onChange(() => {
      if (store.isUp) this.#greet();
      for (const allotment of this.#all.values()) allotment.storeChanged();
    });
    this.#greet();
    this.#plan();
  }

  /** The allotment of a bound. */
  at(bound: string, use: BoundUse): Allotment {
    const known = this.#all.get(bound);
    if (known !== undefined) return known;
    const { clock, store } = this.#options;
    const shareOf = (limit: number): number => this.shareOf(limit);
    const nextSequence = (): number => (this.#sequence += 1);
    const allotment = new Allotment({ clock, store, bound, shareOf, nextSequence, ...use });
    this.#all.set(bound, allotment);
    return allotment;
  }

  /** For a bound that is not used any more. */
  forget(bound: string): void {
    this.#all.delete(bound);
  }

  /** This process's part of a limit; the parts of all add up to it. */
  shareOf(limit: number): number {
    const number = this.#processes.indexOf(this.#options.store.process) + 1;
    return partOf(limit, { workers: this.processes, number });
  }

  get processes(): number {
    return Math.max(this.#processes.length, this.#options.fewestProcesses);
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
    this.#greet();
    for (const allotment of this.#all.values()) void allotment.beat();
  }

  /** While the store is unavailable, the last known processes count. */
  #greet(): void {
    const { store } = this.#options;
    store.greet().then(
      (processes) => {
        if (processes.includes(store.process)) this.#processes = processes;
      },
      () => undefined,
    );
  }
}
