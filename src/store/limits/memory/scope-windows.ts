import type { LimitScope, LimitUnit } from "../../../domain/limits/limit-scope.ts";
import {
  countedSlots,
  guaranteeSlots,
  longestGuaranteeSeconds,
} from "../../../domain/limits/slots.ts";
import { UsageWindow, type ScopeUse } from "../window.ts";
import { AgingMap } from "../../../domain/limits/aging-map.ts";
import { countedSlotsOf, heldTo, type Demand, type ScopeWindow } from "../decision.ts";

type Shelves = Readonly<Record<LimitUnit, WindowShelf>>;

/** How a store may charge a scope. */
export interface ScopeCharge extends ScopeWindow {
  /** The shelf of the window. */
  readonly shelf: WindowShelf;
}

/** The windows of all scopes. Callers call `advance` before anything else. */
export class ScopeWindows {
  // A window untouched for `countedSlots` has nothing left to count, so dropping it is exact.
  readonly #caps: Shelves;
  readonly #guarantees: Shelves;
  readonly #shelves: readonly WindowShelf[];
  #slot: number;

  constructor(slot: number) {
    this.#slot = slot;
    this.#caps = shelvesFor(countedSlots, slot);
    this.#guarantees = shelvesFor(longestGuaranteeSeconds, slot);
    this.#shelves = [...Object.values(this.#caps), ...Object.values(this.#guarantees)];
  }

  get size(): number {
    return this.#shelves.reduce((sum, { size }) => sum + size, 0);
  }

  advance(slot: number): void {
    this.#slot = slot;
    for (const shelf of this.#shelves) shelf.advance(slot);
  }

  /** All that is charged. */
  *used(): Iterable<ScopeUse> {
    for (const [unit, seconds] of sorts) {
      const shelf = (seconds === 0 ? this.#caps : this.#guarantees)[unit];
      for (const [id, window] of shelf.entries()) {
        window.advance(this.#slot);
        const { used } = window;
        const counted = seconds === 0 ? 0 : window.counted + 1;
        if (used !== undefined) yield { scope: { id, unit, seconds: counted }, ...used };
      }
    }
  }

  /** Adds what another process has admitted. */
  include(use: ScopeUse): void {
    const { id, unit, seconds } = use.scope;
    const shelf = (seconds === 0 ? this.#caps : this.#guarantees)[unit];
    let window = shelf.touch(id);
    if (window === undefined) {
      const counted = seconds === 0 ? countedSlots : guaranteeSlots(seconds);
      window = new UsageWindow(this.#slot, counted);
      shelf.set(id, window);
    }
    window.advance(this.#slot);
    window.include(use);
    shelf.keep(id, window);
  }

  /** Adds what a call may use beyond its charge. */
  openOverrun(charges: readonly ScopeCharge[], overrun: number): void {
    if (overrun === 0) return;
    for (const { scope, shelf, window } of charges) {
      if (scope.unit !== "tokens") continue;
      window.openOverrun(overrun);
      shelf.keep(scope.id, window);
    }
  }

  prepare(scopes: readonly LimitScope[]): readonly ScopeCharge[] {
    return scopes.map((scope) => {
      const shelf = (scope.window === "minute" ? this.#caps : this.#guarantees)[scope.unit];
      const window = this.#windowOf(scope, shelf);
      setUp(window, scope);
      return { scope, shelf, window };
    });
  }

  charge(charges: readonly ScopeCharge[], demand: Demand, overrun: number): void {
    for (const { scope, window } of charges) window.charge(demand[scope.unit]);
    this.openOverrun(charges, overrun);
  }

  /**
   * Corrects the charge of a call in all its windows of tokens. Restores windows that were dropped
   * meanwhile, so that no debt is lost.
   */
  correct(charges: readonly ScopeCharge[], overrun: number, by: (window: UsageWindow) => void) {
    for (const { scope, shelf } of charges) {
      if (scope.unit !== "tokens") continue;
      const window = this.#windowOf(scope, shelf);
      window.holdTo(heldTo(scope));
      window.openOverrun(-overrun);
      by(window);
      shelf.keep(scope.id, window);
    }
  }

  #windowOf(scope: LimitScope, shelf: WindowShelf): UsageWindow {
    let window = shelf.touch(scope.id);
    if (window === undefined) {
      window = new UsageWindow(this.#slot, countedSlotsOf(scope));
      shelf.set(scope.id, window);
    }
    window.advance(this.#slot);
    return window;
  }
}

/** 1: a guarantee. */
const sorts = [
  ["requests", 0],
  ["tokens", 0],
  ["requests", 1],
  ["tokens", 1],
] as const;

function shelvesFor(lifetimeSlots: number, slot: number): Shelves {
  return {
    requests: new WindowShelf(lifetimeSlots, slot),
    tokens: new WindowShelf(lifetimeSlots, slot),
  };
}

/** Applies the period and the limit of a scope to its window. */
function setUp(window: UsageWindow, scope: LimitScope): void {
  if (scope.window !== "minute") {
    // While the period changes, no debt is paid, because the previous limit is for another period.
    window.holdTo(0);
    window.count(countedSlotsOf(scope));
  }
  window.holdTo(heldTo(scope));
}

/**
 * Windows by scope. A window untouched for as long as it counts is dropped, unless it owes
 * something: a debt, or a call in flight that may become one.
 */
class WindowShelf {
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
