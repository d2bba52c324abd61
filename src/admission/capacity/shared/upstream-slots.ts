import type { PoolGate } from "../pool-gate.ts";
import type { UpstreamPlaces } from "../upstream-places.ts";
import { type SlotServices, SlotSet } from "./slot-set.ts";

/** Each process may use this part of its share of an upstream's slots without asking. */
const freeParts = 8;

/** This process's slots of an upstream: some that it uses without asking, and those that it got. */
export class UpstreamSlots {
  /** Its state in this process. */
  places: UpstreamPlaces | undefined;
  /** The gate of its targets without a pool. */
  pool: PoolGate | undefined;
  readonly set: SlotSet;
  readonly #processes: () => number;
  readonly #onAsk: () => void;
  #whole = 0;
  #free = 0;

  /** `onAsk` is called before it asks for more. */
  constructor(name: string, services: SlotServices, onAsk: () => void) {
    this.#onAsk = onAsk;
    this.#processes = () => services.store.processes;
    this.set = new SlotSet({
      ...services,
      bound: `upstream ${name}`,
      leastShare: 1,
      demand: () => ({ used: Math.max(0, this.#used - this.#free), waiting: this.#waiting }),
      onChanged: () => this.changed(),
    });
  }

  /** Sets the limit of this process, given that of all. */
  follow(whole: number): void {
    const processes = this.#processes();
    this.#whole = whole;
    this.#free = Math.floor(whole / (freeParts * processes));
    this.set.limit = whole - processes * this.#free;
    if (this.places !== undefined) this.places.limit = this.#free + this.set.places;
  }

  /** Sets it again: the store, or the number of processes, has changed. */
  changed(): void {
    this.follow(this.#whole);
  }

  /** Asks for more; resolves when some may have come. Undefined: asking is in vain. */
  askMore(): Promise<void> | undefined {
    this.#onAsk();
    this.set.plan();
    return this.set.ask();
  }

  leaving(): void {
    this.set.leaving();
  }

  left(): void {
    this.set.left();
  }

  get hasRoom(): boolean {
    return this.#used < this.#free || this.set.hasRoom;
  }

  get #used(): number {
    return this.places?.count ?? 0;
  }

  get #waiting(): number {
    return (this.pool?.gate.open.size ?? 0) + (this.places?.waiting ?? 0);
  }
}
