import type { LimitDimension, LimitState } from "../domain/limit-state.ts";
import type { Limits } from "../domain/plan.ts";
import type { WindowSlot } from "../domain/refusal.ts";

export const slotMs = 1_000;

/**
 * The slot in progress and the 60 before it. Two admissions at most 60 s apart are always counted
 * together, so no 60 seconds, wherever they begin, hold more than the limit.
 */
export const countedSlots = 61;

// A power of two above `countedSlots`, so that a slot's place is a bit mask.
const ringSize = 64;
const ringMask = ringSize - 1;

export function slotAt(nowMs: number): number {
  return Math.floor(nowMs / slotMs);
}

/** Milliseconds from now until a slot is no longer counted. */
export function slotLifeMs(slot: number, nowMs: number): number {
  return (slot + countedSlots) * slotMs - nowMs;
}

/** The limit that a request breaks even in an empty window, if any. */
export function impossibleDimension(limits: Limits, tokens: number): LimitDimension | undefined {
  if (tokens > limits.tokensPerMinute) return "tokens";
  return limits.requestsPerMinute < 1 ? "requests" : undefined;
}

/**
 * Requests and tokens of the last 61 one-second slots, in a ring with running sums. Callers name
 * the time: `advance` first, then ask or charge. Amounts are whole numbers.
 */
export class UsageWindow {
  readonly #requests = new Int32Array(ringSize);
  readonly #tokens = new Float64Array(ringSize);
  #slot: number;
  #requestSum = 0;
  #tokenSum = 0;

  constructor(slot: number) {
    this.#slot = slot;
  }

  /** Drops what is no longer counted at `slot`. Never goes back to an earlier slot. */
  advance(slot: number): void {
    const previous = this.#slot;
    if (slot <= previous) return;
    this.#slot = slot;
    if (this.#requestSum === 0 && this.#tokenSum === 0) return;
    if (slot - previous >= countedSlots) {
      this.#clear();
      return;
    }
    const oldestKept = slot - countedSlots + 1;
    for (let leaving = previous - countedSlots + 1; leaving < oldestKept; leaving++) {
      const place = leaving & ringMask;
      this.#requestSum -= this.#requests[place] ?? 0;
      this.#tokenSum -= this.#tokens[place] ?? 0;
      this.#requests[place] = 0;
      this.#tokens[place] = 0;
    }
  }

  /** The limit that one more request of so many tokens would break now, if any. */
  brokenDimension(limits: Limits, tokens: number): LimitDimension | undefined {
    if (this.#requestSum + 1 > limits.requestsPerMinute) return "requests";
    return this.#tokenSum + tokens > limits.tokensPerMinute ? "tokens" : undefined;
  }

  /** Counts one request of so many tokens in the current slot. */
  charge(tokens: number): void {
    const place = this.#slot & ringMask;
    this.#requests[place] = (this.#requests[place] ?? 0) + 1;
    this.#requestSum += 1;
    this.#addTokens(place, tokens);
  }

  /** Counts what another process admitted in a slot; what is no longer counted changes nothing. */
  restore(slot: number, requests: number, tokens: number): void {
    if (!this.counts(slot)) return;
    const place = slot & ringMask;
    this.#requests[place] = (this.#requests[place] ?? 0) + requests;
    this.#requestSum += requests;
    this.#addTokens(place, tokens);
  }

  /** Counts tokens that were used beyond a reservation whose own slot has left. */
  chargeDebt(tokens: number): void {
    this.#addTokens(this.#slot & ringMask, tokens);
  }

  counts(slot: number): boolean {
    return slot <= this.#slot && slot > this.#slot - countedSlots;
  }

  /**
   * Corrects the tokens of the slot that admitted them. A refund anywhere else would let a later
   * burst spend them a second time. False, and nothing done, when the slot has left.
   */
  adjust(slot: number, difference: number): boolean {
    if (!this.counts(slot)) return false;
    this.#addTokens(slot & ringMask, difference);
    return true;
  }

  /**
   * Milliseconds until a request fits if nothing else is charged: the end of the life of the
   * youngest slot that must leave first. 0 when it fits now, undefined when it never does.
   */
  waitMs(request: { limits: Limits; tokens: number }, nowMs: number): number | undefined {
    const { limits, tokens } = request;
    if (impossibleDimension(limits, tokens) !== undefined) return undefined;
    let excessRequests = this.#requestSum + 1 - limits.requestsPerMinute;
    let excessTokens = this.#tokenSum + tokens - limits.tokensPerMinute;
    if (excessRequests <= 0 && excessTokens <= 0) return 0;
    let slot = this.#slot - countedSlots;
    while (slot < this.#slot && (excessRequests > 0 || excessTokens > 0)) {
      slot++;
      excessRequests -= this.#requests[slot & ringMask] ?? 0;
      excessTokens -= this.#tokens[slot & ringMask] ?? 0;
    }
    return slotLifeMs(slot, nowMs);
  }

  state(limits: Limits, nowMs: number): LimitState {
    return {
      limits,
      remainingRequests: Math.max(0, limits.requestsPerMinute - this.#requestSum),
      remainingTokens: Math.max(0, limits.tokensPerMinute - this.#tokenSum),
      resetRequestsMs: this.#requestSum === 0 ? 0 : this.#resetMs(this.#requests, nowMs),
      resetTokensMs: this.#tokenSum === 0 ? 0 : this.#resetMs(this.#tokens, nowMs),
    };
  }

  /** What the counted slots hold, oldest first, empty ones left out. */
  slots(nowMs: number): readonly WindowSlot[] {
    const held: WindowSlot[] = [];
    if (this.#requestSum === 0 && this.#tokenSum === 0) return held;
    for (let slot = this.#slot - countedSlots + 1; slot <= this.#slot; slot++) {
      const requests = this.#requests[slot & ringMask] ?? 0;
      const tokens = this.#tokens[slot & ringMask] ?? 0;
      const ageMs = Math.floor(nowMs - slot * slotMs);
      if (requests > 0 || tokens > 0) held.push({ ageMs, requests, tokens });
    }
    return held;
  }

  #addTokens(place: number, tokens: number): void {
    this.#tokens[place] = (this.#tokens[place] ?? 0) + tokens;
    this.#tokenSum += tokens;
  }

  #resetMs(amounts: Int32Array | Float64Array, nowMs: number): number {
    const oldest = this.#slot - countedSlots + 1;
    let newestUsed = this.#slot;
    while (newestUsed > oldest && amounts[newestUsed & ringMask] === 0) newestUsed--;
    return slotLifeMs(newestUsed, nowMs);
  }

  #clear(): void {
    this.#requests.fill(0);
    this.#tokens.fill(0);
    this.#requestSum = 0;
    this.#tokenSum = 0;
  }
}
