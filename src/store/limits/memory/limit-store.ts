import type { Clock } from "../../../domain/clock.ts";
import {
  type CountedRequest,
  isTokenCount,
  type LimitScope,
  type LimitState,
} from "../../../domain/limits/limit-scope.ts";
import type { BudgetScope, SpendNote } from "../../../domain/money/budget.ts";
import { slotAt } from "../../../domain/limits/slots.ts";
import { BudgetTally, refusedByBudgets } from "../budget-tally.ts";
import {
  auditedRefusal,
  firstOf,
  refusalFor,
  stateOf,
  type Demand,
  type ScopeWindow,
} from "../decision.ts";
import type { CountDecision, LimitDecision, LimitRequest, LimitStore } from "../limit-store.ts";
import { ScopeWindows } from "./scope-windows.ts";
import { AddedCharges, type ScopeUse } from "../window.ts";

export interface MemoryLimitStoreOptions {
  /** Only the monotonic time is read, so jumps of the wall clock change nothing. */
  readonly clock: Clock;
  /** From 0 to 1; jitters the retries of callers that were refused together. */
  readonly random: () => number;
  /** What calls spend under budgets. Default: nothing is known of other processes. */
  readonly tally?: BudgetTally;
}

/** All that a process knows about the limits, for its successor. */
export interface LimitsState {
  /** The process's monotonic time, in which slots are counted. */
  readonly now: number;
  readonly uses: readonly ScopeUse[];
  /** Calls that were admitted and are not settled. */
  readonly calls: readonly OpenCall[];
}

export interface OpenCall extends Omit<LimitRequest, "counted"> {
  /** The slot in which it was admitted. */
  readonly slot: number;
  /** Tokens charged for it so far. */
  readonly charged: number;
}

/** A request whose tokens are not known yet. */
const oneRequest: Demand = { requests: 1, tokens: 0 };

/**
 * Limits of one process, atomic because every step is synchronous. Idle scopes are dropped as later
 * calls come in.
 */
export class MemoryLimitStore implements LimitStore {
  readonly tally: BudgetTally;
  readonly #options: MemoryLimitStoreOptions;
  #windows: ScopeWindows;
  /** Of calls that are not settled; each is, once. */
  #reservations = new Map<string, Reservation>();
  #slot: number;
  /** How far the clock is ahead of the time in which slots are counted. */
  #aheadMs = 0;

  constructor(options: MemoryLimitStoreOptions) {
    this.#options = options;
    this.tally = options.tally ?? new BudgetTally(crypto.randomUUID());
    this.#slot = slotAt(options.clock.monotonic());
    this.#windows = new ScopeWindows(this.#slot);
  }

  get process(): string {
    return this.tally.process;
  }

  placeOf(scope: BudgetScope): BudgetScope {
    return this.tally.placeOf(scope);
  }

  updateSpend(note: SpendNote): void {
    this.tally.update(note, this.#options.clock.monotonic());
  }

  /** How many scopes are kept, for tests. */
  get scopeCount(): number {
    return this.#windows.size;
  }

  count(scopes: readonly LimitScope[]): CountDecision {
    const now = this.#advance();
    const charges = this.#windows.prepare(scopes);
    const { random } = this.#options;
    const asked = { charges, demand: oneRequest, overrun: 0, now };
    const refusal = refusalFor(asked, random);
    if (refusal !== undefined) return refusal;
    const wouldRefuse = auditedRefusal(asked, random);
    this.#windows.charge(charges, oneRequest, 0);
    return { isAdmitted: true, counted: { scopes, slot: this.#slot }, wouldRefuse };
  }

  uncount({ scopes, slot }: CountedRequest): void {
    this.#advance();
    for (const { scope, window } of this.#windows.prepare(scopes)) {
      if (scope.unit === "requests") window.uncount(slot);
    }
  }

  acquire(request: LimitRequest): LimitDecision {
    const { callId, tokens, mostTokens = tokens, counted, budgets, reserveNano = 0 } = request;
    if (!isTokenCount(tokens)) throw new RangeError(`cannot reserve ${tokens} tokens`);
    const overrun = Math.max(0, mostTokens - tokens);
    const now = this.#advance();
    const charges = this.#windows.prepare(request.scopes);
    const demand = { requests: counted === undefined ? 1 : 0, tokens };
    const { random } = this.#options;
    const asked = { charges, demand, overrun, now };
    const refusal = refusalFor(asked, random);
    if (refusal !== undefined) return refusal;
    if (budgets !== undefined) {
      const full = this.tally.full(budgets, reserveNano);
      if (full !== undefined) {
        const state = stateOf(firstOf(charges), charges, now);
        return refusedByBudgets(full, state, random);
      }
      this.tally.reserve(callId, budgets, reserveNano);
    }
    const wouldRefuse = auditedRefusal(asked, random);
    this.#windows.charge(charges, demand, overrun);
    this.#reservations.set(callId, {
      slot: this.#slot,
      reserved: tokens,
      charges,
      tokens,
      overrun,
    });
    return { isAdmitted: true, state: stateOf(firstOf(charges), charges, now), wouldRefuse };
  }

  use(callId: string, tokens: number): void {
    if (!isTokenCount(tokens)) return;
    this.#advance();
    const reservation = this.#reservations.get(callId);
    if (reservation === undefined) return;
    const more = tokens - reservation.tokens;
    if (more <= 0) return;
    const overrun = Math.min(more, reservation.overrun);
    reservation.tokens = tokens;
    reservation.overrun -= overrun;
    (reservation.added ??= new AddedCharges()).add(this.#slot, more);
    this.#windows.correct(reservation.charges, overrun, (window) => window.chargeMore(more));
  }

  settle(callId: string, tokens: number, costNano?: number): void {
    this.tally.settle(callId, costNano);
    this.#advance();
    const reservation = this.#reservations.get(callId);
    if (reservation === undefined) return;
    this.#reservations.delete(callId);
    const { charges, slot, overrun, reserved, added } = reservation;
    // Runs where calls end, so it must not throw: an invalid count keeps the charge.
    const used = isTokenCount(tokens) ? tokens : reservation.tokens;
    const difference = used - reservation.tokens;
    if (difference === 0 && overrun === 0) return;
    const amount = Math.max(difference, -reserved);
    const back = added?.oldest(amount - difference) ?? [];
    this.#windows.correct(charges, overrun, (window) => {
      if (!window.adjust(slot, amount) && amount > 0) window.chargeMore(amount);
      for (const part of back) window.takeBack(part.slot, part.amount);
    });
  }

  /** All charges and the reservations behind them, of scopes that are wanted. */
  state(isWanted = (_scopeId: string): boolean => true): LimitsState {
    const now = this.#advance();
    return { now, uses: [...this.#windows.used(isWanted)], calls: this.#openCalls(isWanted) };
  }

  /** Goes on where another process was this long ago, in its time. Call before anything else. */
  goOn({ now, uses, calls }: LimitsState, agoMs: number): void {
    this.#aheadMs = this.#options.clock.monotonic() - (now + agoMs);
    this.#slot = slotAt(now + agoMs);
    this.#windows = new ScopeWindows(this.#slot);
    this.#reservations = new Map();
    this.include(uses);
    for (const call of calls) this.adopt(call);
  }

  /** Adds what other processes have admitted, even above the limits. */
  include(uses: Iterable<ScopeUse>): void {
    this.#advance();
    for (const use of uses) this.#windows.include(use);
  }

  /** Takes over a call whose charge is included. */
  adopt({ callId, scopes, tokens, mostTokens = tokens, slot, charged }: OpenCall): void {
    this.#advance();
    const charges = this.#windows.prepare(scopes);
    const overrun = Math.max(0, mostTokens - Math.max(tokens, charged));
    this.#windows.openOverrun(charges, overrun);
    this.#reservations.set(callId, {
      slot,
      reserved: tokens,
      charges,
      tokens: charged,
      overrun,
    });
  }

  /** The state of the first scope's id, as a call would find it. Changes no decision. */
  peek(scopes: readonly LimitScope[]): LimitState {
    const now = this.#advance();
    const charges = this.#windows.peek(scopes);
    return stateOf(firstOf(charges), charges, now);
  }

  #openCalls(isWanted: (scopeId: string) => boolean): readonly OpenCall[] {
    return Array.from(this.#reservations, ([callId, reservation]) => {
      const { charges, slot, reserved, tokens: charged, overrun } = reservation;
      const scopes = charges.map(({ scope }) => scope).filter(({ id }) => isWanted(id));
      const mostTokens = Math.max(reserved, charged) + overrun;
      return { callId, scopes, tokens: reserved, mostTokens, slot, charged };
    });
  }

  #advance(): number {
    const now = this.#options.clock.monotonic() - this.#aheadMs;
    this.#slot = Math.max(this.#slot, slotAt(now));
    this.#windows.advance(this.#slot);
    return now;
  }
}

interface Reservation {
  added?: AddedCharges;
  readonly slot: number;
  /** Tokens charged in that slot, the most that it refunds. */
  readonly reserved: number;
  readonly charges: readonly ScopeWindow[];
  /** Tokens charged for the call so far. */
  tokens: number;
  /** Tokens it may use beyond that. */
  overrun: number;
}
