import { AgingMap } from "../../../domain/limits/aging-map.ts";
import type { UsageWindow } from "../../../domain/limits/window.ts";

/**
 * Windows by scope. A window untouched for as long as it counts is dropped, unless it owes
 * something: a debt, or a call in flight that may become one.
 */
export class WindowShelf {
  readonly #recent: AgingMap<UsageWindow>;
  readonly #owing = new Map<string, UsageWindow>();
  readonly #lifetimeSlots: number;
  #sweptSlot: number;

  constructor(lifetimeSlots: number, slot: number) {
    this.#recent = new AgingMap(lifetimeSlots, slot);
    this.#lifetimeSlots = lifetimeSlots;
    this.#sweptSlot = slot;
  }

  /** How many windows are kept, not counting those kept only for what they owe. */
  get size(): number {
    return this.#recent.size;
  }

  /** Slot at which the shelf is empty if no window is used again or owes anything. */
  get emptyAt(): number {
    return this.#recent.emptyAt;
  }

  advance(slot: number): void {
    this.#recent.advance(slot);
    if (slot < this.#sweptSlot + this.#lifetimeSlots) return;
    this.#sweptSlot = slot;
    for (const [id, window] of this.#owing) {
      window.advance(slot);
      if (window.owes) continue;
      // The payment of the debt still counts.
      this.#owing.delete(id);
      this.#recent.set(id, window);
    }
  }

  /** Reads without keeping the window alive. */
  peek(id: string): UsageWindow | undefined {
    return this.#recent.peek(id) ?? this.#owing.get(id);
  }

  touch(id: string): UsageWindow | undefined {
    const known = this.#recent.touch(id);
    if (known !== undefined || this.#owing.size === 0) return known;
    const owing = this.#owing.get(id);
    if (owing !== undefined) this.#recent.set(id, owing);
    return owing;
  }

  *entries(): Iterable<[string, UsageWindow]> {
    yield* this.#recent.entries();
    for (const entry of this.#owing) if (this.#recent.peek(entry[0]) === undefined) yield entry;
  }

  set(id: string, window: UsageWindow): void {
    this.#recent.set(id, window);
  }

  /** Must be called whenever what a window owes has changed. */
  keep(id: string, window: UsageWindow): void {
    if (window.owes) this.#owing.set(id, window);
    else if (this.#owing.size > 0) this.#owing.delete(id);
  }
}
