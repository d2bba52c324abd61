import { AgingMap } from "../../../domain/limits/aging-map.ts";
import type { UsageWindow } from "../../../domain/limits/window.ts";

/**
 * Windows by scope. Those that nobody has touched for as long as they count are forgotten, unless
 * they owe something: a debt, or a call under way that may become one.
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

  /** How many are remembered; those that owe, and are not used, apart. */
  get size(): number {
    return this.#recent.size;
  }

  /** Slot by which all will be forgotten if none is used any more and none owes anything. */
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
      // What paid the last of it is still counted.
      this.#owing.delete(id);
      this.#recent.set(id, window);
    }
  }

  /** Without keeping it. */
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

  set(id: string, window: UsageWindow): void {
    this.#recent.set(id, window);
  }

  /** To be told whenever what a window owes has changed. */
  keep(id: string, window: UsageWindow): void {
    if (window.owes) this.#owing.set(id, window);
    else if (this.#owing.size > 0) this.#owing.delete(id);
  }
}
