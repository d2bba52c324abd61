import type { Clock } from "../../domain/clock.ts";
import type { LimitDimension, LimitState } from "../../domain/limit-state.ts";
import type { Limits } from "../../domain/plan.ts";
import { AgingMap } from "../../limits/aging-map.ts";
import {
  countedSlots,
  guaranteeLimits,
  guaranteeSlots,
  impossibleDimension,
  longestGuaranteeSeconds,
  slotAt,
  slotMs,
  UsageWindow,
} from "../../limits/window.ts";
import type {
  LimitDecision,
  LimitRequest,
  LimitScope,
  LimitStore,
  PastAdmission,
} from "../store.ts";

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

/** A scope of a request with its window, which is advanced to the current slot. */
interface ScopeCharge {
  readonly id: string;
  /** Of all the time that the window counts. */
  readonly limits: Limits;
  /** Where its window is remembered. */
  readonly shelf: Shelf;
  readonly window: UsageWindow;
  /** New windows are remembered on admission only; a scope named again is charged once. */
  readonly origin: "known" | "new" | "repeated";
}

type Shelf = AgingMap<UsageWindow>;

interface Reservation {
  readonly slot: number;
  readonly tokens: number;
  readonly charges: readonly ScopeCharge[];
  readonly expiresAtMs: number;
}

const largestJitter = 0.1;
// Far above any model's answer, and small enough that sums of a window stay exact integers.
const largestTokenCount = 2 ** 40;

class WindowLimitStore implements MemoryLimitStore {
  readonly #options: MemoryLimitStoreOptions;
  // A window untouched for `countedSlots` has nothing left to count, so forgetting it is exact.
  readonly #caps: Shelf;
  readonly #guarantees: Shelf;
  readonly #shelves: readonly Shelf[];
  readonly #reservations: AgingMap<Reservation>;
  #slot: number;

  constructor(options: MemoryLimitStoreOptions) {
    const now = options.clock.monotonic();
    this.#options = options;
    this.#slot = slotAt(now);
    this.#caps = new AgingMap(countedSlots, this.#slot);
    this.#guarantees = new AgingMap(longestGuaranteeSeconds, this.#slot);
    this.#shelves = [this.#caps, this.#guarantees];
    this.#reservations = new AgingMap(options.reservationTtlMs, now);
  }

  get scopeCount(): number {
    return this.#caps.size + this.#guarantees.size;
  }

  get reservationCount(): number {
    return this.#reservations.size;
  }

  acquire(request: LimitRequest): LimitDecision {
    const { callId, tokens } = request;
    if (!isTokenCount(tokens)) throw new RangeError(`cannot reserve ${tokens} tokens`);
    const now = this.#advance();
    const charges = this.#prepare(request.scopes);
    const first = charges[0];
    if (first === undefined) throw new RangeError("a limit request names at least one scope");

    const roomWaitMs = this.#roomWaitMs(charges, now);
    if (roomWaitMs !== 0 || isOverLimit(charges, tokens)) {
      return this.#refuse({ first, charges, tokens, roomWaitMs, now });
    }
    this.#charge(charges, tokens);
    const expiresAtMs = now + this.#options.reservationTtlMs;
    this.#reservations.set(callId, { slot: this.#slot, tokens, charges, expiresAtMs });
    return { isAdmitted: true, state: first.window.state(first.limits, now) };
  }

  settle(callId: string, tokens: number): void {
    // Runs where calls end, so it must not throw: a count that makes no sense leaves the
    // reservation standing as if all of it had been used.
    if (!isTokenCount(tokens)) return;
    const now = this.#advance();
    const reservation = this.#reservations.take(callId);
    if (reservation === undefined || now >= reservation.expiresAtMs) return;
    const difference = tokens - reservation.tokens;
    if (difference === 0) return;
    for (const charge of reservation.charges) {
      if (charge.origin === "repeated") continue;
      charge.window.advance(this.#slot);
      if (charge.window.adjust(reservation.slot, difference)) continue;
      if (difference > 0) this.#windowOf(charge.id, charge.shelf).chargeDebt(difference);
    }
  }

  restore(admitted: readonly PastAdmission[]): void {
    const now = this.#advance();
    for (const { scopeId: id, isGuarantee = false, ageMs, requests, tokens } of admitted) {
      if (!isTokenCount(tokens) || !isTokenCount(requests)) continue;
      const slot = Math.min(slotAt(now - ageMs), this.#slot);
      this.#windowOf(id, isGuarantee ? this.#guarantees : this.#caps).restore(
        slot,
        requests,
        tokens,
      );
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
      charges.push({ id, limits: this.#bring(window, scope), shelf, window, origin });
    }
    return charges;
  }

  /** Brings a window to the current slot and to what the scope counts; returns its limits. */
  #bring(window: UsageWindow, { limits, guarantee }: LimitScope): Limits {
    window.advance(this.#slot);
    if (guarantee === undefined) return limits;
    window.count(guaranteeSlots(guarantee.seconds));
    return guaranteeLimits(limits, guarantee.seconds);
  }

  #charge(charges: readonly ScopeCharge[], tokens: number): void {
    for (const { id, shelf, window, origin } of charges) {
      if (origin === "repeated") continue;
      if (origin === "new") shelf.set(id, window);
      window.charge(tokens);
    }
  }

  /** May remember more scopes than allowed, at most those of reservations: no debt is lost. */
  #windowOf(id: string, shelf: Shelf): UsageWindow {
    let window = shelf.touch(id);
    if (window === undefined) {
      window = this.#newWindow(shelf);
      shelf.set(id, window);
    }
    window.advance(this.#slot);
    return window;
  }

  #shelfOf({ guarantee }: LimitScope): Shelf {
    return guarantee === undefined ? this.#caps : this.#guarantees;
  }

  #newWindow(shelf: Shelf): UsageWindow {
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
    const retryAfterMs = this.#jittered(waitMs);
    const slots = window.slots(request.now);
    return { isAdmitted: false, scopeId, dimension, freeAfterMs, retryAfterMs, state, slots };
  }

  #jittered(waitMs: number | undefined): number | undefined {
    if (waitMs === undefined) return undefined;
    // Only ever longer: a caller that comes back early would be refused again.
    return Math.ceil(waitMs * (1 + largestJitter * this.#options.random()));
  }
}

interface RefusedRequest {
  readonly first: ScopeCharge;
  readonly charges: readonly ScopeCharge[];
  readonly tokens: number;
  readonly roomWaitMs: number | undefined;
  readonly now: number;
}

interface Refusal {
  readonly scope: ScopeCharge;
  readonly dimension: LimitDimension;
  readonly waitMs: number | undefined;
}

/**
 * Names a scope that can never take the request, else the first that cannot take it now. The wait
 * is the longest of all, so a caller that obeys it is not refused by the next scope.
 */
function findRefusal({ first, charges, tokens, roomWaitMs, now }: RefusedRequest): Refusal {
  let refusal: Refusal | undefined;
  let longestMs = roomWaitMs ?? 0;
  for (const scope of charges) {
    const { limits, window } = scope;
    const dimension = window.brokenDimension(limits, tokens);
    if (dimension === undefined) continue;
    const impossible = impossibleDimension(limits, tokens);
    if (impossible !== undefined) return { scope, dimension: impossible, waitMs: undefined };
    longestMs = Math.max(longestMs, window.waitMs({ limits, tokens }, now) ?? 0);
    refusal ??= { scope, dimension, waitMs: longestMs };
  }
  const waitMs = roomWaitMs === undefined ? undefined : longestMs;
  return { ...(refusal ?? { scope: first, dimension: "requests" }), waitMs };
}

function isTokenCount(tokens: number): boolean {
  return Number.isInteger(tokens) && tokens >= 0 && tokens <= largestTokenCount;
}

function isOverLimit(charges: readonly ScopeCharge[], tokens: number): boolean {
  for (const { limits, window } of charges) {
    if (window.brokenDimension(limits, tokens) !== undefined) return true;
  }
  return false;
}

function countDistinct(charges: readonly ScopeCharge[]): number {
  return charges.filter(({ origin }) => origin !== "repeated").length;
}
