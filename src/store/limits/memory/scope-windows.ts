import type {
  LimitScope,
  LimitState,
  LimitUnit,
  ScopeUse,
} from "../../../domain/limits/limit-scope.ts";
import {
  countedSlots,
  guaranteeSlots,
  longestGuaranteeSeconds,
  slotMs,
} from "../../../domain/limits/slots.ts";
import { UsageWindow } from "../../../domain/limits/window.ts";
import { AgingMap } from "../../../domain/limits/aging-map.ts";
import { firstOf, heldTo, stateOf, type Demand, type ScopeWindow } from "../decision.ts";

type Shelves = Readonly<Record<LimitUnit, WindowShelf>>;

/** How a store may charge a scope. */
export interface ScopeCharge extends ScopeWindow {
  /** The shelf of the window. */
  readonly shelf: WindowShelf;
  /** New windows are kept on admission only; a repeated scope is charged once. */
  readonly origin: "known" | "new" | "repeated";
}

/** The windows of all scopes. Callers call `advance` before anything else. */
export class ScopeWindows {
  /** Scopes of each unit and sort of window kept at once. */
  readonly #scopeLimit: number;
  // A window untouched for `countedSlots` has nothing left to count, so dropping it is exact.
  readonly #caps: Shelves;
  readonly #guarantees: Shelves;
  readonly #shelves: readonly WindowShelf[];
  #slot: number;

  constructor(scopeLimit: number, slot: number) {
    this.#scopeLimit = scopeLimit;
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

  /** Adds what another process has admitted, above the scope limit if necessary. */
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

  /** Adds what a call of another process may use beyond its charge. */
  openOverrun(charges: readonly ScopeCharge[], overrun: number): void {
    for (const { scope, shelf, window, origin } of charges) {
      if (origin === "repeated" || scope.unit !== "tokens") continue;
      if (origin === "new") shelf.set(scope.id, window);
      window.openOverrun(overrun);
      shelf.keep(scope.id, window);
    }
  }

  /** The state of the first scope's id, without keeping its windows alive. */
  peek(scopes: readonly LimitScope[], nowMs: number): LimitState {
    const charges = scopes.map((scope): ScopeCharge => {
      const shelf = this.#shelfOf(scope);
      const window = shelf.peek(scope.id) ?? this.#newWindow(scope);
      this.#bring(window, scope);
      return { scope, shelf, window, origin: "known" };
    });
    return stateOf(firstOf(charges), charges, nowMs);
  }

  prepare(scopes: readonly LimitScope[]): readonly ScopeCharge[] {
    const charges: ScopeCharge[] = [];
    for (const scope of scopes) {
      const shelf = this.#shelfOf(scope);
      const earlier = namedIn(charges, scope.id, shelf);
      const known = earlier?.window ?? shelf.touch(scope.id);
      const window = known ?? this.#newWindow(scope);
      const origin = earlier !== undefined ? "repeated" : known === undefined ? "new" : "known";
      this.#bring(window, scope);
      charges.push({ scope, shelf, window, origin });
    }
    return charges;
  }

  charge(charges: readonly ScopeCharge[], demand: Demand, overrun: number): void {
    for (const { scope, shelf, window, origin } of charges) {
      if (origin === "repeated") continue;
      if (origin === "new") shelf.set(scope.id, window);
      window.charge(demand[scope.unit]);
      if (overrun === 0 || scope.unit !== "tokens") continue;
      window.openOverrun(overrun);
      shelf.keep(scope.id, window);
    }
  }

  /**
   * Corrects the charge of a call in all its windows of tokens. Restores windows that were dropped
   * meanwhile, above the scope limit if necessary, so that no debt is lost.
   */
  correct(charges: readonly ScopeCharge[], overrun: number, by: (window: UsageWindow) => void) {
    for (const { scope, shelf, origin } of charges) {
      if (origin === "repeated" || scope.unit !== "tokens") continue;
      let window = shelf.touch(scope.id);
      if (window === undefined) {
        window = this.#newWindow(scope);
        shelf.set(scope.id, window);
      }
      window.advance(this.#slot);
      window.holdTo(heldTo(scope));
      window.openOverrun(-overrun);
      const { charged } = window;
      by(window);
      // Refunds are reported with the next charge.
      if (window.charged > charged) {
      }
      shelf.keep(scope.id, window);
    }
  }

  /** The wait until there is room for the scopes of a request; undefined: there never is. */
  roomWaitMs(charges: readonly ScopeCharge[], nowMs: number): number | undefined {
    let waitMs = 0;
    for (const shelf of this.#shelves) {
      let newCount = 0;
      let allCount = 0;
      for (const charge of charges) {
        if (charge.shelf !== shelf || charge.origin === "repeated") continue;
        allCount += 1;
        if (charge.origin === "new") newCount += 1;
      }
      if (newCount === 0 || shelf.size + newCount <= this.#scopeLimit) continue;
      if (allCount > this.#scopeLimit) return undefined;
      waitMs = Math.max(waitMs, shelf.emptyAt * slotMs - nowMs);
    }
    return waitMs;
  }

  #bring(window: UsageWindow, scope: LimitScope): void {
    window.advance(this.#slot);
    setUp(window, scope);
  }

  #shelfOf({ window, unit }: LimitScope): WindowShelf {
    return (window === "minute" ? this.#caps : this.#guarantees)[unit];
  }

  #newWindow({ window }: LimitScope): UsageWindow {
    return new UsageWindow(this.#slot, window === "minute" ? countedSlots : guaranteeSlots(60));
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

function namedIn(charges: readonly ScopeCharge[], id: string, shelf: WindowShelf) {
  return charges.find((charge) => charge.shelf === shelf && charge.scope.id === id);
}

/** Applies the period and the limit of a scope to its window. */
function setUp(window: UsageWindow, scope: LimitScope): void {
  if (scope.window !== "minute") {
    // While the period changes, no debt is paid, because the previous limit is for another period.
    window.holdTo(0);
    window.count(guaranteeSlots(scope.window.seconds));
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
