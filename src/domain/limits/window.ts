import type { LimitDimension, LimitState } from "./limit-state.ts";
import type { Limits } from "./plan.ts";
import type { WindowSlot } from "../errors/refusal.ts";
import { SlotRing } from "./slot-ring.ts";
import { countedSlots, impossibleDimension, slotLifeMs, slotMs, type Demand } from "./slots.ts";

/** So far ahead, in slots, a wait is worked out exactly. */
const longestWaitSlots = 3_600;

/**
 * Requests and tokens of the latest one-second slots, in a ring with running sums: 61 of them for a
 * cap, and for a guarantee as many as it is told to count. What was used beyond its limit is a debt:
 * it takes whatever becomes free until it is paid, so that over any time no more than the limit is
 * used but for the debt at its end. Callers name the time: `advance` first, then ask or charge.
 * Amounts are whole numbers.
 */
export class UsageWindow {
  #ring: SlotRing;
  #slot: number;
  #counted: number;
  /** Slots that can still be corrected: as many as were ever counted. */
  #kept: number;
  #requestSum = 0;
  #tokenSum = 0;
  /** Of tokens, in all that is counted. */
  #limit = Number.POSITIVE_INFINITY;
  #debt = 0;
  /** What calls under way may still use beyond what is charged for them. */
  #openOverrun = 0;

  constructor(slot: number, counted = countedSlots) {
    this.#ring = new SlotRing(counted);
    this.#slot = slot;
    this.#counted = counted;
    this.#kept = counted;
  }

  /**
   * Counts another number of slots from now on. Nothing that was admitted is lost: what a shorter
   * time leaves out is counted again by a longer one.
   */
  count(counted: number): void {
    if (counted === this.#counted) return;
    if (counted > this.#kept) this.#keep(counted);
    this.#counted = counted;
    this.#requestSum = 0;
    this.#tokenSum = 0;
    for (let slot = this.#slot - counted + 1; slot <= this.#slot; slot++) {
      this.#requestSum += this.#ring.requests[slot & this.#ring.mask] ?? 0;
      this.#tokenSum += this.#ring.tokens[slot & this.#ring.mask] ?? 0;
    }
    this.#payDebt();
  }

  /** What is used beyond so many tokens is a debt. */
  holdTo(tokens: number): void {
    this.#limit = tokens;
    this.#payDebt();
  }

  /** Drops what is no longer counted at `slot`. Never goes back to an earlier slot. */
  advance(slot: number): void {
    while (this.#debt > 0 && this.#slot < slot) {
      this.#enterNext();
      this.#payDebt();
    }
    if (slot - this.#slot > this.#ring.mask) {
      this.#slot = slot;
      this.#clear();
    }
    while (this.#slot < slot) this.#enterNext();
  }

  /** Tokens that count now. */
  get tokens(): number {
    return this.#tokenSum;
  }

  /** Tokens that were used beyond the limit and that no time has paid yet. */
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

  /** A call begins, or ends when negative, that may use so many tokens beyond what is charged. */
  openOverrun(tokens: number): void {
    this.#openOverrun = Math.max(0, this.#openOverrun + tokens);
  }

  /** The limit that so much more would break now, if any. */
  brokenDimension(limits: Limits, { requests, tokens }: Demand): LimitDimension | undefined {
    if (requests > 0 && this.#requestSum + requests > limits.requestsPerMinute) return "requests";
    const used = this.#tokenSum + this.#debt;
    return used + tokens > limits.tokensPerMinute ? "tokens" : undefined;
  }

  /** Counts requests and tokens in the current slot. */
  charge({ requests, tokens }: Demand): void {
    const place = this.#slot & this.#ring.mask;
    this.#ring.requests[place] = (this.#ring.requests[place] ?? 0) + requests;
    this.#requestSum += requests;
    this.#addTokens(place, tokens);
  }

  /** Takes back a request that a slot has counted. */
  uncount(slot: number): void {
    const place = slot & this.#ring.mask;
    const requests = this.#ring.requests[place] ?? 0;
    if (!this.counts(slot) || requests === 0) return;
    this.#ring.requests[place] = requests - 1;
    this.#requestSum -= 1;
  }

  /** Counts tokens that were used beyond a reservation, as far as they fit now; the rest is a debt. */
  chargeMore(tokens: number): void {
    this.#debt += tokens;
    this.#payDebt();
  }

  counts(slot: number): boolean {
    return slot <= this.#slot && slot > this.#slot - this.#counted;
  }

  /**
   * Corrects the tokens of the slot that admitted them. A refund anywhere else would let a later
   * burst spend them a second time. What does not fit is a debt. False, and nothing done, when the
   * slot has left.
   */
  adjust(slot: number, difference: number): boolean {
    if (slot > this.#slot || slot <= this.#slot - this.#kept) return false;
    const place = slot & this.#ring.mask;
    if (!this.counts(slot)) {
      this.#ring.tokens[place] = (this.#ring.tokens[place] ?? 0) + difference;
      return true;
    }
    const fitting = Math.min(difference, Math.max(0, this.#limit - this.#tokenSum));
    this.#addTokens(place, fitting);
    this.#debt += difference - fitting;
    this.#payDebt();
    return true;
  }

  /**
   * Takes back tokens that were counted for calls under way and not used after all: those added
   * longest ago first, so that what stays is counted for no less time than it would have been.
   */
  refundAdded(tokens: number, sinceSlot: number): void {
    let left = tokens;
    const oldest = Math.max(sinceSlot, this.#slot - this.#kept + 1);
    for (let slot = oldest; slot <= this.#slot && left > 0; slot++) {
      const place = slot & this.#ring.mask;
      const added = this.#ring.added[place] ?? 0;
      const refund = Math.min(left, added);
      if (refund === 0) continue;
      left -= refund;
      this.#ring.added[place] = added - refund;
      this.#ring.tokens[place] = (this.#ring.tokens[place] ?? 0) - refund;
      if (this.counts(slot)) this.#tokenSum -= refund;
    }
    this.#debt -= Math.min(left, this.#debt);
    this.#payDebt();
  }

  /**
   * Milliseconds until a request fits if nothing else is charged: the end of the life of the
   * youngest slot that must leave first. 0 when it fits now, undefined when it never does. A debt
   * of more than an hour is told as an hour.
   */
  waitMs(limits: Limits, demand: Demand, nowMs: number): number | undefined {
    const { requests, tokens } = demand;
    if (impossibleDimension(limits, demand) !== undefined) return undefined;
    if (this.#debt > 0) return this.#waitInDebtMs(limits, demand, nowMs);
    let excessRequests = requests > 0 ? this.#requestSum + requests - limits.requestsPerMinute : 0;
    let excessTokens = this.#tokenSum + tokens - limits.tokensPerMinute;
    if (excessRequests <= 0 && excessTokens <= 0) return 0;
    let slot = this.#slot - this.#counted;
    while (slot < this.#slot && (excessRequests > 0 || excessTokens > 0)) {
      slot++;
      excessRequests -= this.#ring.requests[slot & this.#ring.mask] ?? 0;
      excessTokens -= this.#ring.tokens[slot & this.#ring.mask] ?? 0;
    }
    return slotLifeMs(slot, nowMs, this.#counted);
  }

  state(limits: Limits, nowMs: number): LimitState {
    return {
      limits,
      remainingRequests: Math.max(0, limits.requestsPerMinute - this.#requestSum),
      remainingTokens: Math.max(0, limits.tokensPerMinute - this.#tokenSum),
      resetRequestsMs: this.#requestSum === 0 ? 0 : this.#resetMs(this.#ring.requests, nowMs),
      resetTokensMs:
        this.#tokenSum === 0 ? 0 : this.#resetMs(this.#ring.tokens, nowMs) + this.#debtMs(),
    };
  }

  /** What the counted slots hold, oldest first, empty ones left out. */
  slots(nowMs: number): readonly WindowSlot[] {
    const held: WindowSlot[] = [];
    if (this.#requestSum === 0 && this.#tokenSum === 0) return held;
    for (let slot = this.#slot - this.#counted + 1; slot <= this.#slot; slot++) {
      const requests = this.#ring.requests[slot & this.#ring.mask] ?? 0;
      const tokens = this.#ring.tokens[slot & this.#ring.mask] ?? 0;
      const ageMs = Math.floor(nowMs - slot * slotMs);
      if (requests > 0 || tokens > 0) held.push({ ageMs, requests, tokens });
    }
    return held;
  }

  #enterNext(): void {
    this.#slot += 1;
    const leaving = (this.#slot - this.#counted) & this.#ring.mask;
    this.#requestSum -= this.#ring.requests[leaving] ?? 0;
    this.#tokenSum -= this.#ring.tokens[leaving] ?? 0;
    this.#ring.empty(this.#slot);
  }

  #payDebt(): void {
    if (this.#debt === 0) return;
    const paid = Math.min(this.#debt, this.#limit - this.#tokenSum);
    if (paid <= 0) return;
    this.#debt -= paid;
    const place = this.#slot & this.#ring.mask;
    this.#addTokens(place, paid);
    this.#ring.added[place] = (this.#ring.added[place] ?? 0) + paid;
  }

  /** What is free goes to the debt first, second after second: tried out on a copy. */
  #waitInDebtMs(limits: Limits, demand: Demand, nowMs: number): number {
    const copy = new UsageWindow(this.#slot, this.#counted);
    copy.#ring = this.#ring.copy();
    copy.#requestSum = this.#requestSum;
    copy.#tokenSum = this.#tokenSum;
    copy.#debt = this.#debt;
    copy.holdTo(limits.tokensPerMinute);
    let slot = this.#slot;
    do copy.advance(++slot);
    while (
      slot < this.#slot + longestWaitSlots &&
      copy.brokenDimension(limits, demand) !== undefined
    );
    return slot * slotMs - nowMs;
  }

  /** How long the debt takes beyond the slots that are held now, if nothing more is used. */
  #debtMs(): number {
    if (this.#debt === 0) return 0;
    return Math.ceil(this.#debt / Math.max(1, this.#limit)) * this.#counted * slotMs;
  }

  #addTokens(place: number, tokens: number): void {
    this.#ring.tokens[place] = (this.#ring.tokens[place] ?? 0) + tokens;
    this.#tokenSum += tokens;
  }

  #keep(slots: number): void {
    this.#kept = slots;
    this.#ring = this.#ring.grownTo(slots, this.#slot);
  }

  #resetMs(amounts: Int32Array | Float64Array, nowMs: number): number {
    const oldest = this.#slot - this.#counted + 1;
    let newestUsed = this.#slot;
    while (newestUsed > oldest && amounts[newestUsed & this.#ring.mask] === 0) newestUsed--;
    return slotLifeMs(newestUsed, nowMs, this.#counted);
  }

  #clear(): void {
    this.#ring.clear();
    this.#requestSum = 0;
    this.#tokenSum = 0;
  }
}
