import { SlidingSum } from "../../../../src/domain/limits/sliding-sum.ts";
import { countedSlots, slotAt } from "../../../../src/domain/limits/slots.ts";

export interface LeaseWish {
  readonly worker: number;
  readonly wanted: number;
  readonly workers: number;
}

/** Requests that a worker may admit by itself in a slot: they are charged already. */
export interface Lease {
  readonly slot: number;
  readonly amount: number;
}

/** A lease is at most what the limit has left, divided by this and the number of workers. */
const leastRounds = 4;

/** The window of one limit in the memory of the server, and what it has leased. */
export class LeasedWindow {
  readonly #limit: number;
  readonly #charged = new SlidingSum(countedSlots, 0);
  /** The last slot of which each worker may have leased requests to give back. */
  readonly #leasedIn = new Map<number, number>();
  #noLeasesBefore = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Charges one request if there is room. */
  take(now: number): boolean {
    this.#charged.advance(slotAt(now));
    if (this.#charged.sum >= this.#limit) return false;
    this.#charged.add(1);
    return true;
  }

  /** Whether workers may have something to give back. */
  isLeased(now: number): boolean {
    for (const [worker, slot] of this.#leasedIn) {
      if (slot < slotAt(now) - 1) this.#leasedIn.delete(worker);
    }
    return this.#leasedIn.size > 0;
  }

  /** Ends all leases: none is granted until the end of the next slot. True: this is news. */
  recall(now: number): boolean {
    const isNews = slotAt(now) >= this.#noLeasesBefore;
    this.#noLeasesBefore = Math.max(this.#noLeasesBefore, slotAt(now) + 2);
    return isNews;
  }

  lease({ worker, wanted, workers }: LeaseWish, now: number): Lease {
    const slot = slotAt(now);
    this.#charged.advance(slot);
    const left = Math.max(0, this.#limit - this.#charged.sum);
    const most = Math.floor(left / (leastRounds * workers));
    const amount = slot < this.#noLeasesBefore ? 0 : Math.min(wanted, most);
    if (amount > 0) {
      this.#charged.add(amount);
      this.#leasedIn.set(worker, slot);
    }
    return { slot, amount };
  }

  giveBack(worker: number, { slot, amount }: Lease, now: number): void {
    this.#charged.advance(slotAt(now));
    this.#charged.change(slot, -amount);
    if (this.#leasedIn.get(worker) === slot) this.#leasedIn.delete(worker);
  }
}
