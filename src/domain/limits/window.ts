import type { LimitDimension, LimitState } from "./limit-state.ts";
import type { Limits } from "./plan.ts";
import type { WindowSlot } from "../errors/refusal.ts";
import { SlidingSum } from "./sliding-sum.ts";
import { countedSlots, impossibleDimension, slotLifeMs, slotMs, type Demand } from "./slots.ts";

/** So far ahead, in slots, a wait is worked out exactly. */
const longestWaitSlots = 3_600;

/**
 * Requests and tokens of the latest one-second slots: 61 of them for a cap, and for a guarantee as
 * many as it is told to count. What was used beyond its limit is a debt:
 * it takes whatever becomes free until it is paid, so that over any time no more than the limit is
 * used but for the debt at its end. Callers name the time: `advance` first, then ask or charge.
 * Amounts are whole numbers.
 */
export class UsageWindow {
  #requests: SlidingSum;
  #tokens: SlidingSum;
  /** Of the tokens, those charged after the admission of their call. */
  #added: SlidingSum | undefined;
  /** Of tokens, in all that is counted. */
  #limit = Number.POSITIVE_INFINITY;
  #debt = 0;
  /** What calls under way may still use beyond what is charged for them. */
  #openOverrun = 0;

  constructor(slot: number, counted = countedSlots) {
    this.#requests = new SlidingSum(counted, slot);
    this.#tokens = new SlidingSum(counted, slot);
  }

  /**
   * Counts another number of slots from now on. Nothing that was admitted is lost: what a shorter
   * time leaves out is counted again by a longer one.
   */
  count(counted: number): void {
    if (counted === this.#tokens.counted) return;
    this.#requests.count(counted);
    this.#tokens.count(counted);
    this.#added?.count(counted);
    this.#payDebt();
  }

  /** What is used beyond so many tokens is a debt. */
  holdTo(tokens: number): void {
    this.#limit = tokens;
    this.#payDebt();
  }

  /** Drops what is no longer counted at `slot`. Never goes back to an earlier slot. */
  advance(slot: number): void {
    while (this.#debt > 0 && this.#tokens.slot < slot) {
      this.#enter(this.#tokens.slot + 1);
      this.#payDebt();
    }
    this.#enter(slot);
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
    if (requests > 0 && this.#requests.sum + requests > limits.requestsPerMinute) return "requests";
    const used = this.#tokens.sum + this.#debt;
    return used + tokens > limits.tokensPerMinute ? "tokens" : undefined;
  }

  /** Counts requests and tokens in the current slot. */
  charge({ requests, tokens }: Demand): void {
    this.#requests.add(requests);
    this.#tokens.add(tokens);
  }

  /** Takes back a request that a slot has counted. */
  uncount(slot: number): void {
    if (this.counts(slot) && this.#requests.at(slot) > 0) this.#requests.change(slot, -1);
  }

  /** Counts tokens that were used beyond a reservation, as far as they fit now; the rest is a debt. */
  chargeMore(tokens: number): void {
    this.#debt += tokens;
    this.#payDebt();
  }

  counts(slot: number): boolean {
    return this.#tokens.counts(slot);
  }

  /**
   * Corrects the tokens of the slot that admitted them. A refund anywhere else would let a later
   * burst spend them a second time. What does not fit is a debt. False, and nothing done, when the
   * slot has left.
   */
  adjust(slot: number, difference: number): boolean {
    if (!this.counts(slot)) return this.#tokens.change(slot, difference);
    const fitting = Math.min(difference, Math.max(0, this.#limit - this.#tokens.sum));
    this.#tokens.change(slot, fitting);
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
    const added = this.#added;
    const last = added?.slot ?? Number.NEGATIVE_INFINITY;
    let slot = Math.max(sinceSlot, added?.oldestKept ?? 0);
    for (; slot <= last && left > 0; slot++) {
      const refund = Math.min(left, added?.at(slot) ?? 0);
      if (refund === 0) continue;
      left -= refund;
      added?.change(slot, -refund);
      this.#tokens.change(slot, -refund);
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
    const asked = requests > 0 ? this.#requests.sum + requests : 0;
    const excessRequests = asked - limits.requestsPerMinute;
    const excessTokens = this.#tokens.sum + tokens - limits.tokensPerMinute;
    if (excessRequests <= 0 && excessTokens <= 0) return 0;
    const slot = Math.max(
      this.#requests.slotFreeing(excessRequests),
      this.#tokens.slotFreeing(excessTokens),
    );
    return this.#lifeMs(slot, nowMs);
  }

  state(limits: Limits, nowMs: number): LimitState {
    return {
      limits,
      remainingRequests: Math.max(0, limits.requestsPerMinute - this.#requests.sum),
      remainingTokens: Math.max(0, limits.tokensPerMinute - this.#tokens.sum),
      resetRequestsMs: this.#resetMs(this.#requests, nowMs),
      resetTokensMs:
        this.#tokens.sum === 0 ? 0 : this.#resetMs(this.#tokens, nowMs) + this.#debtMs(),
    };
  }

  /** What the counted slots hold, oldest first, empty ones left out. */
  slots(nowMs: number): readonly WindowSlot[] {
    const held: WindowSlot[] = [];
    const { slot: newest, counted } = this.#tokens;
    if (this.#requests.sum === 0 && this.#tokens.sum === 0) return held;
    for (let slot = newest - counted + 1; slot <= newest; slot++) {
      const requests = this.#requests.at(slot);
      const tokens = this.#tokens.at(slot);
      const ageMs = Math.floor(nowMs - slot * slotMs);
      if (requests > 0 || tokens > 0) held.push({ ageMs, requests, tokens });
    }
    return held;
  }

  #enter(slot: number): void {
    this.#requests.advance(slot);
    this.#tokens.advance(slot);
    this.#added?.advance(slot);
  }

  #payDebt(): void {
    if (this.#debt === 0) return;
    const paid = Math.min(this.#debt, this.#limit - this.#tokens.sum);
    if (paid <= 0) return;
    this.#debt -= paid;
    this.#tokens.add(paid);
    this.#added ??= this.#tokens.emptyCopy();
    this.#added.add(paid);
  }

  /** What is free goes to the debt first, second after second: tried out on a copy. */
  #waitInDebtMs(limits: Limits, demand: Demand, nowMs: number): number {
    const copy = new UsageWindow(0);
    copy.#requests = this.#requests.copy();
    copy.#tokens = this.#tokens.copy();
    copy.#debt = this.#debt;
    copy.holdTo(limits.tokensPerMinute);
    const first = this.#tokens.slot;
    let slot = first;
    do copy.advance(++slot);
    while (slot < first + longestWaitSlots && copy.brokenDimension(limits, demand) !== undefined);
    return slot * slotMs - nowMs;
  }

  /** How long the debt takes beyond the slots that are held now, if nothing more is used. */
  #debtMs(): number {
    if (this.#debt === 0) return 0;
    return Math.ceil(this.#debt / Math.max(1, this.#limit)) * this.#tokens.counted * slotMs;
  }

  #resetMs(amounts: SlidingSum, nowMs: number): number {
    return amounts.sum === 0 ? 0 : this.#lifeMs(amounts.newestUsed, nowMs);
  }

  #lifeMs(slot: number, nowMs: number): number {
    return slotLifeMs(slot, nowMs, this.#tokens.counted);
  }
}
