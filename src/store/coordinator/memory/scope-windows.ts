import type { Limits } from "../../../domain/limits/plan.ts";
import type { LimitState } from "../../../domain/limits/limit-state.ts";
import {
  countedSlots,
  guaranteeLimits,
  guaranteeSlots,
  longestGuaranteeSeconds,
  slotMs,
  type Demand,
} from "../../../domain/limits/slots.ts";
import { UsageWindow } from "../../../domain/limits/window.ts";
import type { LimitScope } from "../../../domain/limits/limit-scope.ts";
import type { PastAdmission } from "../../store.ts";
import { PastUsage } from "./past-usage.ts";
import { countDistinct, type ScopeCharge } from "./scope-charge.ts";
import { WindowShelf } from "./window-shelf.ts";

/** The windows of all scopes. Callers pass the time to `advance` before anything else. */
export class ScopeWindows {
  /** Scopes of each sort remembered at once. */
  readonly #scopeLimit: number;
  // A window untouched for `countedSlots` has nothing left to count, so forgetting it is exact.
  readonly #caps: WindowShelf;
  readonly #guarantees: WindowShelf;
  readonly #shelves: readonly WindowShelf[];
  readonly #past = new PastUsage();
  #slot: number;

  constructor(scopeLimit: number, slot: number) {
    this.#scopeLimit = scopeLimit;
    this.#slot = slot;
    this.#caps = new WindowShelf(countedSlots, slot);
    this.#guarantees = new WindowShelf(longestGuaranteeSeconds, slot);
    this.#shelves = [this.#caps, this.#guarantees];
  }

  get size(): number {
    return this.#caps.size + this.#guarantees.size;
  }

  advance(slot: number): void {
    this.#slot = slot;
    this.#caps.advance(slot);
    this.#guarantees.advance(slot);
    this.#past.advance(slot);
  }

  restore(admitted: readonly PastAdmission[], nowMs: number): void {
    this.#past.add(admitted, nowMs);
  }

  /** What a scope has left, without keeping its window. */
  peek(scope: LimitScope, nowMs: number): LimitState {
    const shelf = this.#shelfOf(scope);
    const window = shelf.peek(scope.id) ?? this.#pastWindow(scope) ?? this.#newWindow(shelf);
    return window.state(this.#bring(window, scope), nowMs);
  }

  prepare(scopes: readonly LimitScope[]): readonly ScopeCharge[] {
    const charges: ScopeCharge[] = [];
    for (const scope of scopes) {
      const { id } = scope;
      const shelf = this.#shelfOf(scope);
      const earlier = charges.find((one) => one.id === id && one.shelf === shelf);
      const known = earlier?.window ?? shelf.touch(id) ?? this.#takePast(scope, shelf);
      const window = known ?? this.#newWindow(shelf);
      const origin = earlier !== undefined ? "repeated" : known === undefined ? "new" : "known";
      const limits = this.#bring(window, scope);
      const overrunLimit = limits.tokensPerMinute * (scope.overrunFactor ?? Infinity);
      const heldTo = heldTokens(scope, limits);
      charges.push({ id, limits, heldTo, overrunLimit, shelf, window, origin });
    }
    return charges;
  }

  charge(charges: readonly ScopeCharge[], demand: Demand, overrun: number): void {
    for (const { id, shelf, window, origin } of charges) {
      if (origin === "repeated") continue;
      if (origin === "new") shelf.set(id, window);
      window.charge(demand);
      if (overrun === 0) continue;
      window.openOverrun(overrun);
      shelf.keep(id, window);
    }
  }

  /**
   * Corrects what a call was charged, in all its windows, each of which may have been forgotten
   * since. May remember more scopes than allowed, at most those of calls under way: no debt is lost.
   */
  correct(charges: readonly ScopeCharge[], overrun: number, by: (window: UsageWindow) => void) {
    for (const { id, shelf, heldTo, origin } of charges) {
      if (origin === "repeated") continue;
      let window = shelf.touch(id);
      if (window === undefined) {
        window = this.#newWindow(shelf);
        shelf.set(id, window);
      }
      window.advance(this.#slot);
      window.holdTo(heldTo);
      window.openOverrun(-overrun);
      by(window);
      shelf.keep(id, window);
    }
  }

  /** Until the scopes of a request can be remembered: 0 now, undefined never. */
  roomWaitMs(charges: readonly ScopeCharge[], nowMs: number): number | undefined {
    let waitMs = 0;
    for (const shelf of this.#shelves) {
      let newCount = 0;
      for (const charge of charges) {
        if (charge.origin === "new" && charge.shelf === shelf) newCount += 1;
      }
      if (newCount === 0 || shelf.size + newCount <= this.#scopeLimit) continue;
      if (countDistinct(charges) > this.#scopeLimit) return undefined;
      waitMs = Math.max(waitMs, shelf.emptyAt * slotMs - nowMs);
    }
    return waitMs;
  }

  /** Brings a window to the current slot and to what the scope counts; returns its limits. */
  #bring(window: UsageWindow, scope: LimitScope): Limits {
    window.advance(this.#slot);
    return setUp(window, scope);
  }

  /** The window of a scope as the process before left it; undefined: it was not used. */
  #pastWindow(scope: LimitScope): UsageWindow | undefined {
    const isGuarantee = scope.guarantee !== undefined;
    const firstSlot = this.#past.firstSlot(scope.id, isGuarantee);
    if (firstSlot === undefined) return undefined;
    const window = new UsageWindow(firstSlot);
    setUp(window, scope);
    this.#past.replay(scope.id, isGuarantee, window);
    return window;
  }

  #takePast(scope: LimitScope, shelf: WindowShelf): UsageWindow | undefined {
    const window = this.#pastWindow(scope);
    if (window === undefined) return undefined;
    this.#past.forget(scope.id, scope.guarantee !== undefined);
    shelf.set(scope.id, window);
    shelf.keep(scope.id, window);
    return window;
  }

  #shelfOf({ guarantee }: LimitScope): WindowShelf {
    return guarantee === undefined ? this.#caps : this.#guarantees;
  }

  #newWindow(shelf: WindowShelf): UsageWindow {
    return new UsageWindow(this.#slot, shelf === this.#caps ? countedSlots : guaranteeSlots(60));
  }
}

/** Brings a window to what a scope counts; returns what the scope may use in all of that time. */
function setUp(window: UsageWindow, scope: LimitScope): Limits {
  const { limits, guarantee } = scope;
  if (guarantee === undefined) {
    window.holdTo(heldTokens(scope, limits));
    return limits;
  }
  const ofAll = guaranteeLimits(limits, guarantee.seconds);
  // Nothing is paid while the time changes: the limit so far is that of another time.
  window.holdTo(0);
  window.count(guaranteeSlots(guarantee.seconds));
  window.holdTo(heldTokens(scope, ofAll));
  return ofAll;
}

/** What is used beyond so many tokens is a debt. */
function heldTokens({ isShared = false }: LimitScope, { tokensPerMinute }: Limits): number {
  return isShared ? Number.POSITIVE_INFINITY : tokensPerMinute;
}
