import type { LimitScope, LimitUnit } from "../../domain/limits/limit-scope.ts";
import { SlidingSum } from "../../domain/limits/sliding-sum.ts";
import { countedSlots, slotLifeMs, slotMs } from "../../domain/limits/slots.ts";

/** The use in a window, or a part of it, as reported to another process. */
export interface WindowUse {
  readonly slot: number;
  readonly amounts: readonly number[];
  readonly debt: number;
  /** The limit beyond which use is a debt. */
  readonly limit: number;
}

/** Longest wait, in slots, that is computed exactly. */
const longestWaitSlots = 3_600;

/**
 * The use of one unit in the latest one-second slots: 61 for a cap, a configurable number for a
 * guarantee. Use beyond the limit is a debt, which is paid from whatever becomes free: over any
 * time, no more than the limit is used, except for the debt at its end. Call `advance` with the
 * time before anything else. Amounts are integers.
 */
export class UsageWindow {
  #used: SlidingSum;
  #limit = Number.POSITIVE_INFINITY;
  #debt = 0;
  /** What running calls may still use beyond their charges. */
  #openOverrun = 0;

  constructor(slot: number, counted = countedSlots) {
    this.#used = new SlidingSum(counted, slot);
  }

  /** Changes the number of counted slots. Use outside a shorter window counts in a longer one. */
  count(counted: number): void {
    if (counted === this.#used.counted) return;
    this.#used.count(counted);
    this.#payDebt();
  }

  /** Sets the limit beyond which use is a debt. */
  holdTo(limit: number): void {
    this.#limit = limit;
    this.#payDebt();
  }

  /** Drops slots that are not counted at `slot`. Never goes back to an earlier slot. */
  advance(slot: number): void {
    while (this.#debt > 0 && this.#used.slot < slot) {
      this.#used.advance(this.#used.slot + 1);
      this.#payDebt();
    }
    this.#used.advance(slot);
  }

  /** Unpaid use beyond the limit. */
  get debt(): number {
    return this.#debt;
  }

  /** Whether a debt would be lost if the window were dropped once its slots have expired. */
  get owes(): boolean {
    return this.#debt > 0 || this.#openOverrun > 0;
  }

  /** What running calls may still use beyond their charges, plus the debt. */
  get overrun(): number {
    return this.#debt + this.#openOverrun;
  }

  /** Adds what a call may use beyond its charge; negative when the call ends. */
  openOverrun(amount: number): void {
    this.#openOverrun = Math.max(0, this.#openOverrun + amount);
  }

  /** Whether this amount would exceed a limit now. */
  isOver(limit: number, amount: number): boolean {
    return this.#used.sum + this.#debt + amount > limit;
  }

  remaining(limit: number): number {
    return Math.max(0, limit - this.#used.sum);
  }

  /** Charges the current slot. */
  charge(amount: number): void {
    this.#used.add(amount);
  }

  /** Reverts one unit that a slot has counted. */
  uncount(slot: number): void {
    if (this.#used.counts(slot) && this.#used.at(slot) > 0) this.#used.change(slot, -1);
  }

  /** Charges use beyond a reservation as far as it fits now; the rest is a debt. */
  chargeMore(amount: number): void {
    this.#debt += amount;
    this.#payDebt();
  }

  /**
   * Corrects the slot of admission, because a refund in another slot could be spent twice. An
   * excess that does not fit is a debt. False, without an effect, when the slot has expired.
   */
  adjust(slot: number, difference: number): boolean {
    if (!this.#used.counts(slot)) return this.#used.change(slot, difference);
    const fitting = Math.min(difference, Math.max(0, this.#limit - this.#used.sum));
    this.#used.change(slot, fitting);
    this.#debt += difference - fitting;
    this.#payDebt();
    return true;
  }

  /** Takes back what was charged in a slot that still counts: from the debt, then from the slot. */
  takeBack(slot: number, amount: number): void {
    if (!this.#used.counts(slot)) return;
    const ofDebt = Math.min(amount, this.#debt);
    this.#debt -= ofDebt;
    this.#used.change(slot, -Math.min(amount - ofDebt, this.#used.at(slot)));
  }

  /**
   * Milliseconds until this amount fits if nothing else is charged: until the newest slot that must
   * expire first does. 0 when it fits now, undefined when it never does. A debt of more than an
   * hour counts as an hour.
   */
  waitMs(limit: number, amount: number, nowMs: number): number | undefined {
    if (amount > limit) return undefined;
    if (!this.isOver(limit, amount)) return 0;
    if (this.#debt > 0) return this.#waitInDebtMs(limit, amount, nowMs);
    const slot = this.#used.slotFreeing(this.#used.sum + amount - limit);
    return slotLifeMs(slot, nowMs, this.#used.counted);
  }

  /** Milliseconds until the window is empty and the debt is paid, if nothing more is used. */
  resetMs(nowMs: number): number {
    if (this.#used.sum === 0) return 0;
    const { newestUsed, counted } = this.#used;
    const ofSlots = slotLifeMs(newestUsed, nowMs, counted);
    if (this.#debt === 0) return ofSlots;
    return ofSlots + Math.ceil(this.#debt / Math.max(1, this.#limit)) * counted * slotMs;
  }

  /** All that it holds; undefined: nothing. */
  get used(): WindowUse | undefined {
    if (this.#used.sum === 0 && this.#debt === 0) return undefined;
    return { ...this.#used.used, debt: this.#debt, limit: this.#limit };
  }

  /** Adds another process's use; what is in later slots counts in the current one. */
  include({ slot, amounts, debt, limit }: WindowUse): void {
    for (const [index, amount] of amounts.entries()) {
      this.#used.change(Math.min(slot + index, this.newest), amount);
    }
    if (debt === 0) return;
    this.#debt += debt;
    if (this.#limit === Number.POSITIVE_INFINITY) this.holdTo(limit);
  }

  /** What counts against a limit. */
  get charged(): number {
    return this.#used.sum + this.#debt;
  }

  /** The limit beyond which use is a debt. */
  get limit(): number {
    return this.#limit;
  }

  get counted(): number {
    return this.#used.counted;
  }

  get newest(): number {
    return this.#used.slot;
  }

  /** The counted use of a slot. */
  at(slot: number): number {
    return this.#used.counts(slot) ? this.#used.at(slot) : 0;
  }

  copy(): UsageWindow {
    const copy = new UsageWindow(this.#used.slot);
    copy.#used = this.#used.copy();
    copy.#limit = this.#limit;
    copy.#debt = this.#debt;
    copy.#openOverrun = this.#openOverrun;
    return copy;
  }

  #payDebt(): void {
    if (this.#debt === 0) return;
    const paid = Math.min(this.#debt, this.#limit - this.#used.sum);
    if (paid <= 0) return;
    this.#debt -= paid;
    this.#used.add(paid);
  }

  /** Simulates the payment of the debt, second by second, on a copy. */
  #waitInDebtMs(limit: number, amount: number, nowMs: number): number {
    const copy = this.copy();
    copy.holdTo(limit);
    const first = this.#used.slot;
    let slot = first;
    do copy.advance(++slot);
    while (slot < first + longestWaitSlots && copy.isOver(limit, amount));
    return slot * slotMs - nowMs;
  }
}

/** What a running call was charged beyond its reservation, by slot. */
export class AddedCharges {
  readonly #added: { readonly slot: number; amount: number }[] = [];

  add(slot: number, amount: number): void {
    const last = this.#added.at(-1);
    if (last?.slot === slot) last.amount += amount;
    else this.#added.push({ slot, amount });
  }

  /** The oldest parts, up to an amount: the rest counts as long. */
  oldest(amount: number): readonly { readonly slot: number; readonly amount: number }[] {
    let left = amount;
    return this.#added.flatMap((part) => {
      const taken = Math.min(left, part.amount);
      left -= taken;
      return taken > 0 ? [{ slot: part.slot, amount: taken }] : [];
    });
  }
}

/** The use in the window of a scope, or a part of it, as reported to another process. */
export interface ScopeUse extends WindowUse {
  readonly scope: NamedScope;
}

/** What identifies a scope. Caps and guarantees of one id count separately. */
export interface NamedScope {
  readonly id: string;
  readonly unit: LimitUnit;
  /** The period of a guarantee; 0: a minute. */
  readonly seconds: number;
}

export function nameOf({
  id,
  unit,
  window,
}: Pick<LimitScope, "id" | "unit" | "window">): NamedScope {
  return { id, unit, seconds: window === "minute" ? 0 : window.seconds };
}
