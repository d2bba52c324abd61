import type { Clock } from "../../../domain/clock.ts";
import type { LimitState } from "../../../domain/limits/limit-state.ts";
import { slotAt } from "../../../domain/limits/slots.ts";
import type { CountedRequest, LimitScope } from "../../../domain/limits/limit-scope.ts";
import type { ScopeUse } from "../../../domain/limits/scope-use.ts";
import type {
  CountDecision,
  LimitDecision,
  LimitRequest,
  LimitStore,
  PastAdmission,
  RefusedByLimit,
} from "../../store.ts";
import type { HandedOver, OpenCall } from "./handed-over.ts";
import { isTokenCount, Reservations } from "./reservations.ts";
import { withJitter } from "./retry-jitter.ts";
import {
  findRefusal,
  isOverLimit,
  overrunLimit,
  siblingOf,
  slotsOf,
  stateOf,
  type Demand,
  type ScopeCharge,
} from "./scope-charge.ts";
import { firstOf, ScopeWindows } from "./scope-windows.ts";

export interface MemoryLimitStoreOptions {
  /** Only the monotonic time is read, so jumps of the wall clock change nothing. */
  readonly clock: Clock;
  /** From 0 to 1; jitters the retries of callers that were refused together. */
  readonly random: () => number;
  /** How long a reservation can be settled: the longest run time of a call. */
  readonly reservationTtlMs: number;
  /**
   * Scopes of each unit and sort of window kept at once. When all are in use, new ones are refused.
   */
  readonly scopeLimit: number;
  /** Whether `takeChanged` is called. */
  readonly isFollowed?: boolean;
}

/** A synchronous limit store, with figures for tests and metrics. */
export interface MemoryLimitStore extends LimitStore {
  count(scopes: readonly LimitScope[]): CountDecision;
  uncount(counted: CountedRequest): void;
  acquire(request: LimitRequest): LimitDecision;
  use(callId: string, tokens: number): void;
  settle(callId: string, tokens: number): void;
  restore(admitted: readonly PastAdmission[]): void;
  /** What was charged or corrected since the last call. */
  takeChanged(): readonly ScopeUse[];
  /** All that is charged, or was told of it. */
  held(): Iterable<ScopeUse>;
  /** All that is charged, and what its reservations have of it, for another process. */
  handOver(): HandedOver;
  /** Forgets everything. */
  clear(): void;
  /** Adds what other processes have admitted, even beyond the limits. */
  include(uses: Iterable<ScopeUse>): void;
  /** Takes over a call whose charge is included. */
  adopt(call: OpenCall): void;
  /** The slot of the last decision. */
  readonly slot: number;
  /** The state of the first scope's id, without charging it or keeping it alive. */
  peek(scopes: readonly LimitScope[]): LimitState;
  readonly scopeCount: number;
  readonly reservationCount: number;
}

/**
 * Limits of one process, atomic because every step is synchronous. Idle scopes and abandoned
 * reservations are dropped as later calls come in.
 */
export function createMemoryLimitStore(options: MemoryLimitStoreOptions): MemoryLimitStore {
  return new WindowLimitStore(options);
}

/** The wait sent to a call that must wait until others end. */
const overrunWaitMs = 2_000;
/** A request whose tokens are not known yet. */
const oneRequest: Demand = { requests: 1, tokens: 0 };

class WindowLimitStore implements MemoryLimitStore {
  readonly #options: MemoryLimitStoreOptions;
  #windows: ScopeWindows;
  #reservations: Reservations;
  #slot: number;

  constructor(options: MemoryLimitStoreOptions) {
    this.#options = options;
    this.#slot = slotAt(options.clock.monotonic());
    this.#windows = this.#noWindows();
    this.#reservations = this.#noReservations();
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
    const refusal = this.#refusal(charges, oneRequest, now);
    if (refusal !== undefined) return refusal;
    this.#windows.charge(charges, oneRequest, 0);
    return { isAdmitted: true, counted: { scopes, slot: this.#slot } };
  }

  uncount({ scopes, slot }: CountedRequest): void {
    this.#advance();
    for (const { scope, window, origin } of this.#windows.prepare(scopes)) {
      if (origin === "known" && scope.unit === "requests") window.uncount(slot);
    }
  }

  acquire(request: LimitRequest): LimitDecision {
    const { callId, tokens, mostTokens = tokens, counted } = request;
    if (!isTokenCount(tokens)) throw new RangeError(`cannot reserve ${tokens} tokens`);
    const overrun = Math.max(0, mostTokens - tokens);
    const now = this.#advance();
    const charges = this.#windows.prepare(request.scopes);
    const hopeless = overrun > 0 && charges.find(({ scope }) => overrun > overrunLimit(scope));
    if (hopeless) return this.#refuseOverrun(hopeless, { charges, overrun, now });
    const demand = { requests: counted === undefined ? 1 : 0, tokens };
    const refusal = this.#refusal(charges, demand, now);
    if (refusal !== undefined) return refusal;
    const overrunning = overrun > 0 && charges.find((charge) => isOverrunning(charge, overrun));
    if (overrunning) return this.#refuseOverrun(overrunning, { charges, overrun, now });
    this.#windows.charge(charges, demand, overrun);
    this.#reservations.set(callId, {
      slot: this.#slot,
      reserved: tokens,
      charges,
      expiresAtMs: now + this.#options.reservationTtlMs,
      tokens,
      overrun,
    });
    return { isAdmitted: true, state: stateOf(firstOf(charges), charges, now) };
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
    // Runs where calls end, so it must not throw: an invalid count keeps the charge.
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

  takeChanged(): readonly ScopeUse[] {
    return this.#windows.takeChanged();
  }

  held(): Iterable<ScopeUse> {
    this.#advance();
    return this.#windows.held();
  }

  handOver(): HandedOver {
    const now = this.#advance();
    return { uses: [...this.#windows.used()], calls: [...this.#reservations.open(now)] };
  }

  clear(): void {
    this.#windows = this.#noWindows();
    this.#reservations = this.#noReservations();
  }

  include(uses: Iterable<ScopeUse>): void {
    this.#advance();
    for (const use of uses) this.#windows.include(use);
  }

  adopt({ callId, scopes, tokens, mostTokens = tokens, slot, charged }: OpenCall): void {
    const now = this.#advance();
    const charges = this.#windows.prepare(scopes);
    const overrun = Math.max(0, mostTokens - Math.max(tokens, charged));
    this.#windows.openOverrun(charges, overrun);
    this.#reservations.set(callId, {
      slot,
      reserved: tokens,
      charges,
      expiresAtMs: now + this.#options.reservationTtlMs,
      tokens: charged,
      overrun,
    });
  }

  get slot(): number {
    return this.#slot;
  }

  peek(scopes: readonly LimitScope[]): LimitState {
    return this.#windows.peek(scopes, this.#advance());
  }

  #noWindows(): ScopeWindows {
    const { scopeLimit, isFollowed = false } = this.#options;
    return new ScopeWindows({ scopeLimit, slot: this.#slot, isFollowed });
  }

  #noReservations(): Reservations {
    const { clock, reservationTtlMs } = this.#options;
    return new Reservations(reservationTtlMs, clock.monotonic());
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
    const { refusing, waitMs } = findRefusal({ first, charges, demand, roomWaitMs, now });
    return {
      ...this.#refusedBy(refusing, charges, now),
      dimension: refusing.scope.unit,
      freeAfterMs: waitMs === undefined ? undefined : Math.ceil(waitMs),
      retryAfterMs: withJitter(waitMs, this.#options.random),
    };
  }

  #refuseOverrun(refusing: ScopeCharge, { charges, overrun, now }: Overrunning): RefusedByLimit {
    const limit = overrunLimit(refusing.scope);
    // When calls in flight end cannot be foreseen; most end soon.
    const waitMs = overrun > limit ? undefined : overrunWaitMs;
    return {
      ...this.#refusedBy(refusing, charges, now),
      dimension: "tokens",
      freeAfterMs: undefined,
      retryAfterMs: withJitter(waitMs, this.#options.random),
      overrun: { limit, used: refusing.window.overrun, asked: overrun },
    };
  }

  #refusedBy(refusing: ScopeCharge, charges: readonly ScopeCharge[], now: number) {
    return {
      isAdmitted: false,
      scopeId: refusing.scope.id,
      state: stateOf(refusing, charges, now),
      debt: siblingOf(refusing, charges, "tokens")?.window.debt ?? 0,
      slots: slotsOf(refusing, charges, now),
    } as const;
  }
}

interface Overrunning {
  readonly charges: readonly ScopeCharge[];
  readonly overrun: number;
  readonly now: number;
}

function isOverrunning({ scope, window }: ScopeCharge, overrun: number): boolean {
  return window.overrun + overrun > overrunLimit(scope);
}
