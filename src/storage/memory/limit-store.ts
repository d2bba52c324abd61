import type { Clock } from "../../domain/clock.ts";
import type { LimitState } from "../../domain/limit-state.ts";
import type { Limits } from "../../domain/plan.ts";
import {
  countedSlots,
  guaranteeLimits,
  guaranteeSlots,
  longestGuaranteeSeconds,
  slotAt,
  slotMs,
} from "../../limits/slots.ts";
import { UsageWindow } from "../../limits/window.ts";
import type {
  LimitDecision,
  LimitRequest,
  LimitScope,
  LimitStore,
  PastAdmission,
} from "../store.ts";
import { isTokenCount, Reservations, type Reservation } from "./reservations.ts";
import { withJitter } from "./retry-jitter.ts";
import {
  countDistinct,
  findRefusal,
  isOverLimit,
  isOverrunning,
  type RefusedRequest,
  type ScopeCharge,
} from "./scope-charge.ts";
import { WindowShelf } from "./window-shelf.ts";

export interface MemoryLimitStoreOptions {
  /** Only its monotonic side is read, so wall clock jumps change nothing. */
  readonly clock: Clock;
  /** From 0 to 1; spreads the retries of callers that were refused together. */
  readonly random: () => number;
  /** How long a reservation can be settled: the longest a call may run. */
  readonly reservationTtlMs: number;
  /** Scopes of each sort remembered at once. When all are in use, unknown ones are refused. */
  readonly scopeLimit: number;
}

/** A limit store that answers at once, with what tests and metrics may look at. */
export interface MemoryLimitStore extends LimitStore {
  acquire(request: LimitRequest): LimitDecision;
  use(callId: string, tokens: number): void;
  settle(callId: string, tokens: number): void;
  restore(admitted: readonly PastAdmission[]): void;
  /** What a scope has left, without charging it or keeping it alive. */
  peek(scope: LimitScope): LimitState;
  readonly scopeCount: number;
  readonly reservationCount: number;
}

/**
 * Limits of one process: it owns the counters, and every step is one uninterrupted function.
 * Idle scopes and abandoned reservations are forgotten as later calls come in.
 */
export function createMemoryLimitStore(options: MemoryLimitStoreOptions): MemoryLimitStore {
  return new WindowLimitStore(options);
}

/** After what time a call is tried again that must wait for the end of others. */
const overrunWaitMs = 2_000;

class WindowLimitStore implements MemoryLimitStore {
  readonly #options: MemoryLimitStoreOptions;
  // A window untouched for `countedSlots` has nothing left to count, so forgetting it is exact.
  readonly #caps: WindowShelf;
  readonly #guarantees: WindowShelf;
  readonly #shelves: readonly WindowShelf[];
  readonly #reservations: Reservations;
  #slot: number;

  constructor(options: MemoryLimitStoreOptions) {
    const now = options.clock.monotonic();
    this.#options = options;
    this.#slot = slotAt(now);
    this.#caps = new WindowShelf(countedSlots, this.#slot);
    this.#guarantees = new WindowShelf(longestGuaranteeSeconds, this.#slot);
    this.#shelves = [this.#caps, this.#guarantees];
    this.#reservations = new Reservations(options.reservationTtlMs, now);
  }

  get scopeCount(): number {
    return this.#caps.size + this.#guarantees.size;
  }

  get reservationCount(): number {
    return this.#reservations.size;
  }

  acquire(request: LimitRequest): LimitDecision {
    const { callId, tokens, mostTokens = tokens } = request;
    if (!isTokenCount(tokens)) throw new RangeError(`cannot reserve ${tokens} tokens`);
    const overrun = Math.max(0, mostTokens - tokens);
    const now = this.#advance();
    const charges = this.#prepare(request.scopes);
    const first = charges[0];
    if (first === undefined) throw new RangeError("a limit request names at least one scope");

    const roomWaitMs = this.#roomWaitMs(charges, now);
    if (roomWaitMs !== 0 || isOverLimit(charges, tokens)) {
      return this.#refuse({ first, charges, tokens, roomWaitMs, now });
    }
    const overrunning = charges.find((charge) => isOverrunning(charge, overrun));
    if (overrunning !== undefined) return this.#refuseOverrun(overrunning, overrun, now);
    this.#charge(charges, tokens, overrun);
    this.#reservations.set(callId, {
      slot: this.#slot,
      reserved: tokens,
      charges,
      expiresAtMs: now + this.#options.reservationTtlMs,
      tokens,
      overrun,
    });
    return { isAdmitted: true, state: first.window.state(first.limits, now) };
  }

  use(callId: string, tokens: number): void {
    if (!isTokenCount(tokens)) return;
    const now = this.#advance();
    const reservation = this.#reservations.touch(callId);
    if (reservation === undefined || now >= reservation.expiresAtMs) return;
    const more = tokens - reservation.tokens;
    if (more <= 0) return;
    const overrun = Math.min(more, reservation.overrun);
    reservation.tokens = tokens;
    reservation.overrun -= overrun;
    this.#correct(reservation, overrun, (window) => window.chargeMore(more));
  }

  settle(callId: string, tokens: number): void {
    const now = this.#advance();
    const reservation = this.#reservations.take(callId);
    if (reservation === undefined) return;
    // Runs where calls end, so it must not throw: a count that makes no sense leaves what was
    // charged standing as if all of it had been used.
    const isInTime = now < reservation.expiresAtMs;
    const used = isInTime && isTokenCount(tokens) ? tokens : reservation.tokens;
    const difference = Math.max(used - reservation.tokens, -reservation.reserved);
    if (difference === 0 && reservation.overrun === 0) return;
    this.#correct(reservation, reservation.overrun, (window) => {
      if (!window.adjust(reservation.slot, difference) && difference > 0) {
        window.chargeMore(difference);
      }
    });
  }

  restore(admitted: readonly PastAdmission[]): void {
    const now = this.#advance();
    for (const { scopeId: id, isGuarantee = false, ageMs, requests, tokens } of admitted) {
      if (!isTokenCount(tokens) || !isTokenCount(requests)) continue;
      const slot = Math.min(slotAt(now - ageMs), this.#slot);
      const shelf = isGuarantee ? this.#guarantees : this.#caps;
      this.#windowOf(id, shelf).restore(slot, requests, tokens);
    }
  }

  peek(scope: LimitScope): LimitState {
    const now = this.#advance();
    const shelf = this.#shelfOf(scope);
    const window = shelf.peek(scope.id) ?? this.#newWindow(shelf);
    return window.state(this.#bring(window, scope), now);
  }

  #advance(): number {
    const now = this.#options.clock.monotonic();
    this.#slot = Math.max(this.#slot, slotAt(now));
    this.#caps.advance(this.#slot);
    this.#guarantees.advance(this.#slot);
    this.#reservations.advance(now);
    return now;
  }

  #prepare(scopes: readonly LimitScope[]): readonly ScopeCharge[] {
    const charges: ScopeCharge[] = [];
    for (const scope of scopes) {
      const { id } = scope;
      const shelf = this.#shelfOf(scope);
      const earlier = charges.find((one) => one.id === id && one.shelf === shelf);
      const known = earlier?.window ?? shelf.touch(id);
      const window = known ?? this.#newWindow(shelf);
      const origin = earlier !== undefined ? "repeated" : known === undefined ? "new" : "known";
      const limits = this.#bring(window, scope);
      const overrunLimit = limits.tokensPerMinute * (scope.overrunFactor ?? Infinity);
      charges.push({ id, limits, overrunLimit, shelf, window, origin });
    }
    return charges;
  }

  /** Brings a window to the current slot and to what the scope counts; returns its limits. */
  #bring(window: UsageWindow, { limits, guarantee }: LimitScope): Limits {
    window.advance(this.#slot);
    if (guarantee === undefined) {
      window.holdTo(limits.tokensPerMinute);
      return limits;
    }
    window.count(guaranteeSlots(guarantee.seconds));
    const ofAll = guaranteeLimits(limits, guarantee.seconds);
    window.holdTo(ofAll.tokensPerMinute);
    return ofAll;
  }

  #charge(charges: readonly ScopeCharge[], tokens: number, overrun: number): void {
    for (const { id, shelf, window, origin } of charges) {
      if (origin === "repeated") continue;
      if (origin === "new") shelf.set(id, window);
      window.charge(tokens);
      if (overrun === 0) continue;
      window.openOverrun(overrun);
      shelf.keep(id, window);
    }
  }

  /** In all windows of a call, each of which may have been forgotten since. */
  #correct(
    { charges }: Reservation,
    overrun: number,
    correct: (window: UsageWindow) => void,
  ): void {
    for (const { id, shelf, limits, origin } of charges) {
      if (origin === "repeated") continue;
      const window = this.#windowOf(id, shelf);
      window.holdTo(limits.tokensPerMinute);
      window.openOverrun(-overrun);
      correct(window);
      shelf.keep(id, window);
    }
  }

  /** May remember more scopes than allowed, at most those of reservations: no debt is lost. */
  #windowOf(id: string, shelf: WindowShelf): UsageWindow {
    let window = shelf.touch(id);
    if (window === undefined) {
      window = this.#newWindow(shelf);
      shelf.set(id, window);
    }
    window.advance(this.#slot);
    return window;
  }

  #shelfOf({ guarantee }: LimitScope): WindowShelf {
    return guarantee === undefined ? this.#caps : this.#guarantees;
  }

  #newWindow(shelf: WindowShelf): UsageWindow {
    return new UsageWindow(this.#slot, shelf === this.#caps ? countedSlots : guaranteeSlots(60));
  }

  /** Until the scopes of a request can be remembered: 0 now, undefined never. */
  #roomWaitMs(charges: readonly ScopeCharge[], now: number): number | undefined {
    let waitMs = 0;
    const { scopeLimit } = this.#options;
    for (const shelf of this.#shelves) {
      let newCount = 0;
      for (const charge of charges) {
        if (charge.origin === "new" && charge.shelf === shelf) newCount += 1;
      }
      if (newCount === 0 || shelf.size + newCount <= scopeLimit) continue;
      if (countDistinct(charges) > scopeLimit) return undefined;
      waitMs = Math.max(waitMs, shelf.emptyAt * slotMs - now);
    }
    return waitMs;
  }

  #refuse(request: RefusedRequest): LimitDecision {
    const { scope, dimension, waitMs } = findRefusal(request);
    const { id: scopeId, limits, window } = scope;
    const state = window.state(limits, request.now);
    const freeAfterMs = waitMs === undefined ? undefined : Math.ceil(waitMs);
    const retryAfterMs = withJitter(waitMs, this.#options.random);
    const slots = window.slots(request.now);
    return { isAdmitted: false, scopeId, dimension, freeAfterMs, retryAfterMs, state, slots };
  }

  #refuseOverrun(
    { id: scopeId, limits, window, overrunLimit }: ScopeCharge,
    overrun: number,
    now: number,
  ): LimitDecision {
    // Calls under way end when they end: not to be foreseen, and most soon.
    const waitMs = overrun > overrunLimit ? undefined : overrunWaitMs;
    return {
      isAdmitted: false,
      scopeId,
      dimension: "tokens",
      freeAfterMs: undefined,
      retryAfterMs: withJitter(waitMs, this.#options.random),
      overrun: { limit: overrunLimit, used: window.overrun, asked: overrun },
      state: window.state(limits, now),
      slots: window.slots(now),
    };
  }
}
