import type { LimitDimension, LimitState } from "../domain/limit-state.ts";
import type { Limits } from "../domain/plan.ts";
import type { WindowSlot } from "../domain/refusal.ts";

export const slotMs = 1_000;

/**
 * The slot in progress and the 60 before it. Two admissions at most 60 s apart are always counted
 * together, so no 60 seconds, wherever they begin, hold more than the limit.
 */
export const countedSlots = 61;

/** Longest time that a guarantee may count. */
export const longestGuaranteeSeconds = 3_600;

/**
 * Slots that a guarantee of so many seconds counts: the one in progress and those before it, one
 * less than it has seconds. What is sent that long apart is then never counted together, wherever
 * in a slot it falls.
 */
export function guaranteeSlots(seconds: number): number {
  return Math.min(Math.max(Math.floor(seconds), 2), longestGuaranteeSeconds) - 1;
}

/** What a guarantee may use in all of its time, its limits being those of a minute. */
export function guaranteeLimits(limits: Limits, seconds: number): Limits {
  const minutes = (guaranteeSlots(seconds) + 1) / 60;
  return {
    requestsPerMinute: Math.floor(limits.requestsPerMinute * minutes),
    tokensPerMinute: Math.floor(limits.tokensPerMinute * minutes),
  };
}

export function slotAt(nowMs: number): number {
  return Math.floor(nowMs / slotMs);
}

/** Milliseconds from now until a slot is no longer counted. */
export function slotLifeMs(slot: number, nowMs: number, counted = countedSlots): number {
  return (slot + counted) * slotMs - nowMs;
}

/** The limit that a request breaks even in an empty window, if any. */
export function impossibleDimension(limits: Limits, tokens: number): LimitDimension | undefined {
  if (tokens > limits.tokensPerMinute) return "tokens";
  return limits.requestsPerMinute < 1 ? "requests" : undefined;
}

/**
 * Requests and tokens of the latest one-second slots, in a ring with running sums: 61 of them for a
 * cap, and for a guarantee as many as it is told to count. Callers name the time: `advance` first,
 * then ask or charge. Amounts are whole numbers.
 */
export class UsageWindow {
  #requests: Int32Array;
  #tokens: Float64Array;
  /** The ring is a power of two, so that a slot's place is a bit mask. */
  #mask: number;
  #slot: number;
  #counted: number;
  /** Slots that can still be corrected: as many as were ever counted. */
  #kept: number;
  #requestSum = 0;
  #tokenSum = 0;

  constructor(slot: number, counted = countedSlots) {
    const size = ringSizeFor(counted);
    this.#requests = new Int32Array(size);
    this.#tokens = new Float64Array(size);
    this.#mask = size - 1;
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
      this.#requestSum += this.#requests[slot & this.#mask] ?? 0;
      this.#tokenSum += this.#tokens[slot & this.#mask] ?? 0;
    }
  }

  /** Drops what is no longer counted at `slot`. Never goes back to an earlier slot. */
  advance(slot: number): void {
    const previous = this.#slot;
    if (slot <= previous) return;
    this.#slot = slot;
    if (slot - previous > this.#mask) {
      this.#clear();
      return;
    }
    for (let entering = previous + 1; entering <= slot; entering++) {
      const leaving = (entering - this.#counted) & this.#mask;
      this.#requestSum -= this.#requests[leaving] ?? 0;
      this.#tokenSum -= this.#tokens[leaving] ?? 0;
      const place = entering & this.#mask;
      this.#requests[place] = 0;
      this.#tokens[place] = 0;
    }
  }

  /** Tokens that count now. */
  get tokens(): number {
    return this.#tokenSum;
  }

  /** The limit that one more request of so many tokens would break now, if any. */
  brokenDimension(limits: Limits, tokens: number): LimitDimension | undefined {
    if (this.#requestSum + 1 > limits.requestsPerMinute) return "requests";
    return this.#tokenSum + tokens > limits.tokensPerMinute ? "tokens" : undefined;
  }

  /** Counts one request of so many tokens in the current slot. */
  charge(tokens: number): void {
    const place = this.#slot & this.#mask;
    this.#requests[place] = (this.#requests[place] ?? 0) + 1;
    this.#requestSum += 1;
    this.#addTokens(place, tokens);
  }

  /** Counts what another process admitted in a slot; what is no longer counted changes nothing. */
  restore(slot: number, requests: number, tokens: number): void {
    if (!this.counts(slot)) return;
    const place = slot & this.#mask;
    this.#requests[place] = (this.#requests[place] ?? 0) + requests;
    this.#requestSum += requests;
    this.#addTokens(place, tokens);
  }

  /** Counts tokens that were used beyond a reservation whose own slot has left. */
  chargeDebt(tokens: number): void {
    this.#addTokens(this.#slot & this.#mask, tokens);
  }

  counts(slot: number): boolean {
    return slot <= this.#slot && slot > this.#slot - this.#counted;
  }

  /**
   * Corrects the tokens of the slot that admitted them. A refund anywhere else would let a later
   * burst spend them a second time. False, and nothing done, when the slot has left.
   */
  adjust(slot: number, difference: number): boolean {
    if (slot > this.#slot || slot <= this.#slot - this.#kept) return false;
    const place = slot & this.#mask;
    if (this.counts(slot)) this.#addTokens(place, difference);
    else this.#tokens[place] = (this.#tokens[place] ?? 0) + difference;
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
    let slot = this.#slot - this.#counted;
    while (slot < this.#slot && (excessRequests > 0 || excessTokens > 0)) {
      slot++;
      excessRequests -= this.#requests[slot & this.#mask] ?? 0;
      excessTokens -= this.#tokens[slot & this.#mask] ?? 0;
    }
    return slotLifeMs(slot, nowMs, this.#counted);
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
    for (let slot = this.#slot - this.#counted + 1; slot <= this.#slot; slot++) {
      const requests = this.#requests[slot & this.#mask] ?? 0;
      const tokens = this.#tokens[slot & this.#mask] ?? 0;
      const ageMs = Math.floor(nowMs - slot * slotMs);
      if (requests > 0 || tokens > 0) held.push({ ageMs, requests, tokens });
    }
    return held;
  }

  #addTokens(place: number, tokens: number): void {
    this.#tokens[place] = (this.#tokens[place] ?? 0) + tokens;
    this.#tokenSum += tokens;
  }

  #keep(slots: number): void {
    this.#kept = slots;
    const size = ringSizeFor(slots);
    if (size <= this.#mask + 1) return;
    const requests = new Int32Array(size);
    const tokens = new Float64Array(size);
    for (let slot = this.#slot - this.#mask; slot <= this.#slot; slot++) {
      requests[slot & (size - 1)] = this.#requests[slot & this.#mask] ?? 0;
      tokens[slot & (size - 1)] = this.#tokens[slot & this.#mask] ?? 0;
    }
    this.#requests = requests;
    this.#tokens = tokens;
    this.#mask = size - 1;
  }

  #resetMs(amounts: Int32Array | Float64Array, nowMs: number): number {
    const oldest = this.#slot - this.#counted + 1;
    let newestUsed = this.#slot;
    while (newestUsed > oldest && amounts[newestUsed & this.#mask] === 0) newestUsed--;
    return slotLifeMs(newestUsed, nowMs, this.#counted);
  }

  #clear(): void {
    this.#requests.fill(0);
    this.#tokens.fill(0);
    this.#requestSum = 0;
    this.#tokenSum = 0;
  }
}

/** Above the number of slots, so that the slot that begins never takes the place of one counted. */
function ringSizeFor(slots: number): number {
  return 2 ** (Math.floor(Math.log2(slots)) + 1);
}
