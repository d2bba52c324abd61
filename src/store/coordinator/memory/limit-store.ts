import type { Clock } from "../../../domain/clock.ts";
import type { LimitState } from "../../../domain/limits/limit-state.ts";
import { slotAt, type Demand } from "../../../domain/limits/slots.ts";
import type { CountedRequest, LimitScope } from "../../../domain/limits/limit-scope.ts";
import type {
  CountDecision,
  LimitDecision,
  LimitRequest,
  LimitStore,
  PastAdmission,
  RefusedByLimit,
} from "../../store.ts";
import { isTokenCount, Reservations } from "./reservations.ts";
import { withJitter } from "./retry-jitter.ts";
import { findRefusal, isOverLimit, isOverrunning, type ScopeCharge } from "./scope-charge.ts";
import { ScopeWindows } from "./scope-windows.ts";

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
  count(scopes: readonly LimitScope[]): CountDecision;
  uncount(counted: CountedRequest): void;
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
  readonly #windows: ScopeWindows;
  readonly #reservations: Reservations;
  #slot: number;

  constructor(options: MemoryLimitStoreOptions) {
    const now = options.clock.monotonic();
    this.#options = options;
    this.#slot = slotAt(now);
    this.#windows = new ScopeWindows(options.scopeLimit, this.#slot);
    this.#reservations = new Reservations(options.reservationTtlMs, now);
  }

  get scopeCount(): number {
    return this.#windows.size;
  }

  get reservationCount(): number {
    return this.#reservations.size;
  }

  count(scopes: readonly LimitScope[]): CountDecision {
    const now = this.#advance();
    const charges = this.#windows.prepare(scopes);
    const demand = { requests: 1, tokens: 0 };
    const refusal = this.#refusal(charges, demand, now);
    if (refusal !== undefined) return refusal;
    this.#windows.charge(charges, demand, 0);
    return { isAdmitted: true, counted: { scopes, slot: this.#slot } };
  }

  uncount({ scopes, slot }: CountedRequest): void {
    this.#advance();
    for (const { window, origin } of this.#windows.prepare(scopes)) {
      if (origin === "known") window.uncount(slot);
    }
  }

  acquire(request: LimitRequest): LimitDecision {
    const { callId, tokens, mostTokens = tokens, counted } = request;
    if (!isTokenCount(tokens)) throw new RangeError(`cannot reserve ${tokens} tokens`);
    const overrun = Math.max(0, mostTokens - tokens);
    const now = this.#advance();
    const charges = this.#windows.prepare(request.scopes);
    const hopeless = charges.find(({ overrunLimit }) => overrun > overrunLimit);
    if (hopeless !== undefined) return this.#refuseOverrun(hopeless, overrun, now);
    const demand = { requests: counted === undefined ? 1 : 0, tokens };
    const refusal = this.#refusal(charges, demand, now);
    if (refusal !== undefined) return refusal;
    const overrunning = charges.find((charge) => isOverrunning(charge, overrun));
    if (overrunning !== undefined) return this.#refuseOverrun(overrunning, overrun, now);
    this.#windows.charge(charges, demand, overrun);
    this.#reservations.set(callId, {
      slot: this.#slot,
      reserved: tokens,
      charges,
      expiresAtMs: now + this.#options.reservationTtlMs,
      tokens,
      overrun,
    });
    const { window, limits } = firstOf(charges);
    return { isAdmitted: true, state: window.state(limits, now) };
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
    this.#windows.correct(reservation.charges, overrun, (window) => window.chargeMore(more));
  }

  settle(callId: string, tokens: number): void {
    const now = this.#advance();
    const reservation = this.#reservations.take(callId);
    if (reservation === undefined) return;
    const { charges, slot, overrun, reserved } = reservation;
    // Runs where calls end, so it must not throw: a count that makes no sense leaves what was
    // charged standing as if all of it had been used.
    const isInTime = now < reservation.expiresAtMs;
    const used = isInTime && isTokenCount(tokens) ? tokens : reservation.tokens;
    const difference = used - reservation.tokens;
    if (difference === 0 && overrun === 0) return;
    const ofSlot = Math.max(difference, -reserved);
    this.#windows.correct(charges, overrun, (window) => {
      if (!window.adjust(slot, ofSlot) && difference > 0) window.chargeMore(difference);
      if (difference < ofSlot) window.refundAdded(ofSlot - difference, slot);
    });
  }

  restore(admitted: readonly PastAdmission[]): void {
    this.#windows.restore(admitted, this.#advance());
  }

  peek(scope: LimitScope): LimitState {
    return this.#windows.peek(scope, this.#advance());
  }

  #advance(): number {
    const now = this.#options.clock.monotonic();
    this.#slot = Math.max(this.#slot, slotAt(now));
    this.#windows.advance(this.#slot);
    this.#reservations.advance(now);
    return now;
  }

  #refusal(
    charges: readonly ScopeCharge[],
    demand: Demand,
    now: number,
  ): RefusedByLimit | undefined {
    const roomWaitMs = this.#windows.roomWaitMs(charges, now);
    const first = firstOf(charges);
    if (roomWaitMs === 0 && !isOverLimit(charges, demand)) return undefined;
    const { scope, dimension, waitMs } = findRefusal({ first, charges, demand, roomWaitMs, now });
    const { id: scopeId, limits, window } = scope;
    const state = window.state(limits, now);
    const freeAfterMs = waitMs === undefined ? undefined : Math.ceil(waitMs);
    const retryAfterMs = withJitter(waitMs, this.#options.random);
    return {
      isAdmitted: false,
      scopeId,
      dimension,
      freeAfterMs,
      retryAfterMs,
      state,
      debt: window.debt,
      slots: window.slots(now),
    };
  }

  #refuseOverrun(
    { id: scopeId, limits, window, overrunLimit }: ScopeCharge,
    overrun: number,
    now: number,
  ): RefusedByLimit {
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
      debt: window.debt,
      slots: window.slots(now),
    };
  }
}

function firstOf(charges: readonly ScopeCharge[]): ScopeCharge {
  const [first] = charges;
  if (first === undefined) throw new RangeError("a limit request names at least one scope");
  return first;
}
