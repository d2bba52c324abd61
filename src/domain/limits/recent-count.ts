import { SlidingSum } from "./sliding-sum.ts";
import { slotAt } from "./slots.ts";

/** Counts events of the last seconds, including the current one. */
export class RecentCount {
  readonly #seconds: SlidingSum;

  constructor(seconds: number) {
    this.#seconds = new SlidingSum(seconds);
  }

  add(nowMs: number): void {
    this.#seconds.addAt(slotAt(nowMs), 1);
  }

  sum(nowMs: number): number {
    return this.#seconds.sumAt(slotAt(nowMs));
  }

  clear(): void {
    this.#seconds.clear();
  }
}
