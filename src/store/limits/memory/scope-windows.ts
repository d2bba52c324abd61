import { AgingMap } from "../../../domain/limits/aging-map.ts";
import type { LimitScope, LimitUnit } from "../../../domain/limits/limit-scope.ts";
import {
  countedSlots,
  guaranteeSlots,
  longestGuaranteeSeconds,
} from "../../../domain/limits/slots.ts";
import { countedSlotsOf, heldTo, type Demand, type ScopeWindow } from "../decision.ts";
import { UsageWindow, type ScopeUse } from "../window.ts";

/** Windows by the id of their scope. */
type Shelf = AgingMap<UsageWindow>;
type Shelves = Readonly<Record<LimitUnit, Shelf>>;

/** The windows of all scopes. Callers call `advance` before anything else. */
export class ScopeWindows {
  readonly #caps: Shelves;
  readonly #guarantees: Shelves;
  readonly #shelves: readonly Shelf[];
  #slot: number;

  constructor(slot: number) {
    this.#slot = slot;
    const keeps = (window: UsageWindow): boolean => this.#keeps(window);
    const shelvesFor = (lifetimeSlots: number): Shelves => ({
      requests: new AgingMap(lifetimeSlots, slot, keeps),
      tokens: new AgingMap(lifetimeSlots, slot, keeps),
    });
    this.#caps = shelvesFor(countedSlots);
    this.#guarantees = shelvesFor(longestGuaranteeSeconds);
    this.#shelves = [...Object.values(this.#caps), ...Object.values(this.#guarantees)];
  }

  get size(): number {
    return this.#shelves.reduce((sum, { size }) => sum + size, 0);
  }

  advance(slot: number): void {
    this.#slot = slot;
    for (const shelf of this.#shelves) shelf.advance(slot);
  }

  /** All that is charged in scopes that are wanted. */
  *used(isWanted: (scopeId: string) => boolean): Iterable<ScopeUse> {
    for (const [unit, seconds] of sorts) {
      const shelf = (seconds === 0 ? this.#caps : this.#guarantees)[unit];
      for (const [id, window] of shelf.entries()) {
        if (!isWanted(id)) continue;
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
    this.#windowIn(shelf, id, seconds === 0 ? countedSlots : guaranteeSlots(seconds)).include(use);
  }

  /** Adds what a call may use beyond its charge. */
  openOverrun(charges: readonly ScopeWindow[], overrun: number): void {
    if (overrun === 0) return;
    for (const { scope, window } of charges) {
      if (scope.unit === "tokens") window.openOverrun(overrun);
    }
  }

  /** What `prepare` would return, without keeping a window or applying a period or a limit. */
  peek(scopes: readonly LimitScope[]): readonly ScopeWindow[] {
    return scopes.map((scope) => {
      const counted = countedSlotsOf(scope);
      const kept = this.#shelfOf(scope).peek(scope.id);
      kept?.advance(this.#slot);
      if (kept?.counted === counted && kept.limit === heldTo(scope)) return { scope, window: kept };
      const window = kept?.copy() ?? new UsageWindow(this.#slot, counted);
      setUp(window, scope);
      return { scope, window };
    });
  }

  prepare(scopes: readonly LimitScope[]): readonly ScopeWindow[] {
    return scopes.map((scope) => {
      const window = this.#windowOf(scope);
      setUp(window, scope);
      return { scope, window };
    });
  }

  charge(charges: readonly ScopeWindow[], demand: Demand, overrun: number): void {
    for (const { scope, window } of charges) window.charge(demand[scope.unit]);
    this.openOverrun(charges, overrun);
  }

  /**
   * Corrects the charge of a call in all its windows of tokens. Those that were dropped meanwhile begin
   * anew, so that no debt is lost.
   */
  correct(charges: readonly ScopeWindow[], overrun: number, by: (window: UsageWindow) => void) {
    for (const { scope } of charges) {
      if (scope.unit !== "tokens") continue;
      const window = this.#windowOf(scope);
      window.holdTo(heldTo(scope));
      window.openOverrun(-overrun);
      by(window);
    }
  }

  #windowOf(scope: LimitScope): UsageWindow {
    return this.#windowIn(this.#shelfOf(scope), scope.id, countedSlotsOf(scope));
  }

  #shelfOf({ window, unit }: LimitScope): Shelf {
    return (window === "minute" ? this.#caps : this.#guarantees)[unit];
  }

  #windowIn(shelf: Shelf, id: string, counted: number): UsageWindow {
    let window = shelf.touch(id);
    if (window === undefined) {
      window = new UsageWindow(this.#slot, counted);
      shelf.set(id, window);
    }
    window.advance(this.#slot);
    return window;
  }

  /**
   * A window untouched for as long as it counts has nothing left, unless it owes something: a debt, or
   * a call in flight that may become one. What pays the debt now still counts for as long.
   */
  #keeps(window: UsageWindow): boolean {
    if (!window.owes) return false;
    window.advance(this.#slot);
    return true;
  }
}

/** 1: a guarantee. */
const sorts = [
  ["requests", 0],
  ["tokens", 0],
  ["requests", 1],
  ["tokens", 1],
] as const;

/** Applies the period and the limit of a scope to its window. */
function setUp(window: UsageWindow, scope: LimitScope): void {
  if (scope.window !== "minute") {
    // While the period changes, no debt is paid, because the previous limit is for another period.
    window.holdTo(0);
    window.count(countedSlotsOf(scope));
  }
  window.holdTo(heldTo(scope));
}
