import { SlidingSum } from "../../../src/domain/limits/sliding-sum.ts";
import { countedSlots, slotAt } from "../../../src/domain/limits/slots.ts";

/** Requests of each key in the last 61 slots, as a limiter counts them. */
export class FleetWindows {
  readonly #windows: (SlidingSum | undefined)[] = [];

  used(key: number, nowMs: number): number {
    const window = this.#windows[key];
    window?.advance(slotAt(nowMs));
    return window?.sum ?? 0;
  }

  /** Takes as many requests as the limit allows, at most `count`; returns how many. */
  take(key: number, count: number, terms: { readonly limit: number; readonly nowMs: number }) {
    const taken = Math.min(count, Math.max(0, terms.limit - this.used(key, terms.nowMs)));
    if (taken > 0) this.add(key, taken, terms.nowMs);
    return taken;
  }

  /** Adds requests that were admitted, even above a limit. */
  add(key: number, count: number, nowMs: number): void {
    const slot = slotAt(nowMs);
    const window = (this.#windows[key] ??= new SlidingSum(countedSlots, slot));
    window.advance(slot);
    window.add(count);
  }

  forget(key: number): void {
    this.#windows[key] = undefined;
  }

  clear(): void {
    this.#windows.length = 0;
  }
}
