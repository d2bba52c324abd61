import { SlidingSum } from "./sliding-sum.ts";
import { countedSlots, slotLifeMs, slotMs } from "./slots.ts";

/** So far ahead, in slots, a wait is worked out exactly. */
const longestWaitSlots = 3_600;

/**
 * How much of one unit was used in the latest one-second slots: 61 of them for a cap, and for a
 * guarantee as many as it is told to count. What was used beyond the limit is a debt: it takes
 * whatever becomes free until it is paid, so that over any time no more than the limit is used but
 * for the debt at its end. Callers name the time: `advance` first, then ask or charge. Amounts are
 * whole numbers.
 */
export class UsageWindow {
  #used: SlidingSum;
  /** Of what was used, that charged after the admission of its call. */
  #added: SlidingSum | undefined;
  /** Of all that is counted. */
  #limit = Number.POSITIVE_INFINITY;
  #debt = 0;
  /** What calls under way may still use beyond what is charged for them. */
  #openOverrun = 0;

  constructor(slot: number, counted = countedSlots) {
    this.#used = new SlidingSum(counted, slot);
  }

  /**
   * Counts another number of slots from now on. Nothing that was admitted is lost: what a shorter
   * time leaves out is counted again by a longer one.
   */
  count(counted: number): void {
    if (counted === this.#used.counted) return;
    this.#used.count(counted);
    this.#added?.count(counted);
    this.#payDebt();
  }

  /** What is used beyond so much is a debt. */
  holdTo(limit: number): void {
    this.#limit = limit;
    this.#payDebt();
  }

  /** Drops what is no longer counted at `slot`. Never goes back to an earlier slot. */
  advance(slot: number): void {
    while (this.#debt > 0 && this.#used.slot < slot) {
      this.#enter(this.#used.slot + 1);
      this.#payDebt();
    }
    this.#enter(slot);
  }

  /** What was used beyond the limit and no time has paid yet. */
  get debt(): number {
    return this.#debt;
  }

  /** Whether forgetting the window once its slots have left would forgive anything. */
  get owes(): boolean {
    return this.#debt > 0 || this.#openOverrun > 0;
  }

  /** What calls under way may still use beyond what is charged for them, the debt included. */
  get overrun(): number {
    return this.#debt + this.#openOverrun;
  }

  /** A call begins, or ends when negative, that may use so much beyond what is charged. */
  openOverrun(amount: number): void {
    this.#openOverrun = Math.max(0, this.#openOverrun + amount);
  }

  /** Whether so much more would break a limit now. */
  isOver(limit: number, amount: number): boolean {
    return this.#used.sum + this.#debt + amount > limit;
  }

  remaining(limit: number): number {
    return Math.max(0, limit - this.#used.sum);
  }

  /** In the current slot. */
  charge(amount: number): void {
    this.#used.add(amount);
  }

  /** Takes back one that a slot has counted. */
  uncount(slot: number): void {
    if (this.#used.counts(slot) && this.#used.at(slot) > 0) this.#used.change(slot, -1);
  }

  /** Counts what was used beyond a reservation, as far as it fits now; the rest is a debt. */
  chargeMore(amount: number): void {
    this.#debt += amount;
    this.#payDebt();
  }

  /**
   * Corrects the slot that admitted. A refund anywhere else would let a later burst spend it a
   * second time. What does not fit is a debt. False, and nothing done, when the slot has left.
   */
  adjust(slot: number, difference: number): boolean {
    if (!this.#used.counts(slot)) return this.#used.change(slot, difference);
    const fitting = Math.min(difference, Math.max(0, this.#limit - this.#used.sum));
    this.#used.change(slot, fitting);
    this.#debt += difference - fitting;
    this.#payDebt();
    return true;
  }

  /**
   * Takes back what was counted for calls under way and not used after all: that added longest ago
   * first, so that what stays is counted for no less time than it would have been.
   */
  refundAdded(amount: number, sinceSlot: number): void {
    let left = amount;
    const added = this.#added;
    const newest = added?.slot ?? Number.NEGATIVE_INFINITY;
    let slot = Math.max(sinceSlot, added?.oldestKept ?? 0);
    for (; slot <= newest && left > 0; slot++) {
      const refund = Math.min(left, added?.at(slot) ?? 0);
      if (refund === 0) continue;
      left -= refund;
      added?.change(slot, -refund);
      this.#used.change(slot, -refund);
    }
    this.#debt -= Math.min(left, this.#debt);
    this.#payDebt();
  }

  /**
   * Milliseconds until so much fits if nothing else is charged: the end of the life of the youngest
   * slot that must leave first. 0 when it fits now, undefined when it never does. A debt of more
   * than an hour is told as an hour.
   */
  waitMs(limit: number, amount: number, nowMs: number): number | undefined {
    if (amount > limit) return undefined;
    if (!this.isOver(limit, amount)) return 0;
    if (this.#debt > 0) return this.#waitInDebtMs(limit, amount, nowMs);
    const slot = this.#used.slotFreeing(this.#used.sum + amount - limit);
    return slotLifeMs(slot, nowMs, this.#used.counted);
  }

  /** Milliseconds until all is free again, the debt paid, if nothing more is used. */
  resetMs(nowMs: number): number {
    if (this.#used.sum === 0) return 0;
    const { newestUsed, counted } = this.#used;
    const ofSlots = slotLifeMs(newestUsed, nowMs, counted);
    if (this.#debt === 0) return ofSlots;
    return ofSlots + Math.ceil(this.#debt / Math.max(1, this.#limit)) * counted * slotMs;
  }

  /** The slots that count. */
  get oldest(): number {
    return this.#used.slot - this.#used.counted + 1;
  }

  get newest(): number {
    return this.#used.slot;
  }

  /** What a slot holds that counts. */
  at(slot: number): number {
    return this.#used.counts(slot) ? this.#used.at(slot) : 0;
  }

  #enter(slot: number): void {
    this.#used.advance(slot);
    this.#added?.advance(slot);
  }

  #payDebt(): void {
    if (this.#debt === 0) return;
    const paid = Math.min(this.#debt, this.#limit - this.#used.sum);
    if (paid <= 0) return;
    this.#debt -= paid;
    this.#used.add(paid);
    this.#added ??= this.#used.emptyCopy();
    this.#added.add(paid);
  }

  /** What is free goes to the debt first, second after second: tried out on a copy. */
  #waitInDebtMs(limit: number, amount: number, nowMs: number): number {
    const copy = new UsageWindow(0);
    copy.#used = this.#used.copy();
    copy.#debt = this.#debt;
    copy.holdTo(limit);
    const first = this.#used.slot;
    let slot = first;
    do copy.advance(++slot);
    while (slot < first + longestWaitSlots && copy.isOver(limit, amount));
    return slot * slotMs - nowMs;
  }
}
