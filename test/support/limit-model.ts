import type { LimitScope, LimitState } from "../../src/domain/limits/limit-scope.ts";
import { slotAt } from "../../src/domain/limits/slots.ts";
import type {
  LimitDecision,
  LimitRequest,
  RefusedByLimit,
} from "../../src/store/limits/limit-store.ts";
import { limitsById, type LimitsOfId } from "./limits-by-id.ts";

interface Charge {
  readonly slot: number;
  requests: number;
  tokens: number;
}

interface Demand {
  readonly requests: number;
  readonly tokens: number;
}

interface Reservation {
  readonly slot: number;
  readonly reserved: number;
  tokens: number;
  /** What it was charged beyond that, in the order of time. */
  readonly added: { readonly slot: number; readonly tokens: number }[];
  overrun: number;
  /** Slot in which the overrun was held last. */
  heldIn: number;
  readonly charges: readonly { readonly scope: LimitsOfId; readonly charge: Charge }[];
}

/** All charges of a scope, and its debt. */
class Account {
  readonly charges: Charge[] = [];
  debt = 0;
  readonly open = new Set<Reservation>();
  readonly #overrunSlots: number;
  #limit = Infinity;
  #slot: number;

  constructor(slot: number, overrunSlots: number) {
    this.#slot = slot;
    this.#overrunSlots = overrunSlots;
  }

  get overrun(): number {
    const generationOf = (slot: number): number => Math.floor(slot / this.#overrunSlots);
    let sum = 0;
    for (const { overrun, heldIn } of this.open) {
      if (generationOf(this.#slot) - generationOf(heldIn) <= 1) sum += overrun;
    }
    return sum;
  }

  /** Each second, free tokens pay the debt. */
  advance(slot: number): void {
    while (this.#slot < slot) {
      this.#slot += 1;
      this.pay();
    }
  }

  holdTo(limit: number): void {
    this.#limit = limit;
    this.pay();
  }

  get free(): number {
    return Math.max(0, this.#limit - this.sum().tokens);
  }

  pay(): void {
    const tokens = Math.min(this.debt, this.free);
    if (tokens === 0) return;
    this.debt -= tokens;
    this.charges.push({ slot: this.#slot, requests: 0, tokens });
  }

  /** While that second counts: from the debt, then from its charges, whose ever. */
  takeBack(slot: number, tokens: number): void {
    if (slot < this.#slot - 60) return;
    const ofDebt = Math.min(tokens, this.debt);
    this.debt -= ofDebt;
    let left = tokens - ofDebt;
    for (const charge of this.counted().filter((each) => each.slot === slot)) {
      const taken = Math.min(left, charge.tokens);
      charge.tokens -= taken;
      left -= taken;
    }
  }

  sum(): { requests: number; tokens: number } {
    let requests = 0;
    let tokens = 0;
    for (const charge of this.counted()) {
      requests += charge.requests;
      tokens += charge.tokens;
    }
    return { requests, tokens };
  }

  counted(): Charge[] {
    return this.charges.filter((charge) => isCounted(charge, this.#slot));
  }

  copy(): Account {
    const copy = new Account(this.#slot, this.#overrunSlots);
    copy.charges.push(...this.charges.map((charge) => ({ ...charge })));
    copy.debt = this.debt;
    copy.#limit = this.#limit;
    return copy;
  }
}

/**
 * The rules of the limiter in their plainest form, slow and unbounded: a list of all charges,
 * summed for every decision. Written independently of the real one, to compare with it.
 */
export class LimitModel {
  readonly #overrunSlots: number;
  readonly #accounts = new Map<string, Account>();
  readonly #reservations = new Map<string, Reservation>();

  /**
   * `overrunSlots`: overrun is forgotten after the end of the period of so many slots that follows
   * the one in which it was held last.
   */
  constructor(overrunSlots = Infinity) {
    this.#overrunSlots = overrunSlots;
  }

  /** Undefined: counted. */
  count(scopes: readonly LimitScope[], nowMs: number): RefusedByLimit | undefined {
    const byId = limitsById(scopes);
    const enforced = byId.filter(({ isAudited }) => !isAudited);
    const refusal = this.#refuse(enforced, { requests: 1, tokens: 0 }, nowMs);
    if (refusal === undefined) this.#charge(byId, { requests: 1, tokens: 0 }, slotAt(nowMs));
    return refusal;
  }

  uncount(scopes: readonly LimitScope[], slot: number, nowMs: number): void {
    for (const scope of limitsById(scopes)) {
      const charges = this.#account(scope, slotAt(nowMs)).counted();
      const counted = charges.find((charge) => charge.slot === slot && charge.requests > 0);
      if (counted !== undefined) counted.requests -= 1;
    }
  }

  acquire(request: LimitRequest, nowMs: number): LimitDecision {
    const { callId, tokens, mostTokens = tokens, counted } = request;
    const scopes = limitsById(request.scopes);
    const slot = slotAt(nowMs);
    const demand = { requests: counted === undefined ? 1 : 0, tokens };
    const overrun = Math.max(0, mostTokens - tokens);
    // Whoever asks applies the limits, even if refused.
    for (const scope of scopes) this.#account(scope, slot);
    const enforced = scopes.filter(({ isAudited }) => !isAudited);
    const audited = scopes.filter(({ isAudited }) => isAudited);
    const refusal = this.#refuseCall(enforced, { demand, overrun, nowMs });
    if (refusal !== undefined) return refusal;
    const wouldRefuse = this.#refuseCall(audited, { demand, overrun, nowMs });
    const charges = this.#charge(scopes, demand, slot);
    const held = { atMs: nowMs, slot, reserved: tokens, tokens, added: [], overrun, heldIn: slot };
    const reservation = { ...held, charges };
    this.#reservations.set(callId, reservation);
    for (const scope of scopes) this.#account(scope, slot).open.add(reservation);
    const first = scopes[0];
    if (first === undefined) throw new Error("no scopes");
    return { isAdmitted: true, state: this.state(first, nowMs), wouldRefuse };
  }

  #refuseCall(
    scopes: readonly LimitsOfId[],
    { demand, overrun, nowMs }: { demand: Demand; overrun: number; nowMs: number },
  ): RefusedByLimit | undefined {
    const hopeless = scopes.find((scope) => overrun > overrunLimit(scope));
    if (hopeless !== undefined) return this.#refuseOverrun(hopeless, overrun, nowMs);
    const refusal = this.#refuse(scopes, demand, nowMs);
    if (refusal !== undefined) return refusal;
    const overrunning = scopes.find((scope) => {
      const { debt, overrun: open } = this.#account(scope, slotAt(nowMs));
      return overrun > 0 && debt + open + overrun > overrunLimit(scope);
    });
    return overrunning && this.#refuseOverrun(overrunning, overrun, nowMs);
  }

  #refuse(
    scopes: readonly LimitsOfId[],
    demand: Demand,
    nowMs: number,
  ): RefusedByLimit | undefined {
    const { requests, tokens } = demand;
    const slot = slotAt(nowMs);
    const tooSmall = scopes.find((scope) => scope.tokens < tokens || scope.requests < requests);
    const refusing =
      tooSmall ?? scopes.find((scope) => !fits(this.#account(scope, slot), scope, demand));
    if (refusing === undefined) return undefined;
    const used = tooSmall === undefined ? this.#account(refusing, slot).sum().requests : 0;
    const isOverRequests = requests > 0 && used + requests > refusing.requests;
    const waitMs = tooSmall === undefined ? this.#waitMs(scopes, demand, nowMs) : undefined;
    return {
      isAdmitted: false,
      scopeId: refusing.id,
      dimension: isOverRequests ? "requests" : "tokens",
      freeAfterMs: waitMs,
      retryAfterMs: waitMs,
      state: this.state(refusing, nowMs),
      debt: this.#account(refusing, slot).debt,
    };
  }

  #charge(scopes: readonly LimitsOfId[], demand: Demand, slot: number) {
    return scopes.map((scope) => {
      const charge = { slot, ...demand };
      this.#account(scope, slot).charges.push(charge);
      return { scope, charge };
    });
  }

  #refuseOverrun(scope: LimitsOfId, overrun: number, nowMs: number): RefusedByLimit {
    const { debt, overrun: open } = this.#account(scope, slotAt(nowMs));
    const limit = overrunLimit(scope);
    return {
      isAdmitted: false,
      scopeId: scope.id,
      dimension: "tokens",
      freeAfterMs: undefined,
      retryAfterMs: overrun > limit ? undefined : 2_000,
      overrun: { limit, used: debt + open, asked: overrun },
      state: this.state(scope, nowMs),
      debt,
    };
  }

  use(callId: string, tokens: number, nowMs: number): void {
    const reservation = this.#reservations.get(callId);
    if (reservation === undefined) return;
    const more = Math.max(0, tokens - reservation.tokens);
    const isForgotten = this.#overrunSlots !== Infinity && reservation.overrun > 0;
    if (more === 0 && !isForgotten) return;
    reservation.tokens += more;
    reservation.overrun -= Math.min(more, reservation.overrun);
    reservation.heldIn = slotAt(nowMs);
    if (more > 0) reservation.added.push({ slot: slotAt(nowMs), tokens: more });
    for (const { scope } of reservation.charges) {
      const account = this.#account(scope, slotAt(nowMs));
      account.debt += more;
      account.pay();
    }
  }

  settle(callId: string, tokens: number, nowMs: number): void {
    const reservation = this.#reservations.get(callId);
    this.#reservations.delete(callId);
    if (reservation === undefined) return;
    const slot = slotAt(nowMs);
    const change = tokens - reservation.tokens;
    if (change === 0 && reservation.overrun === 0) return;
    const difference = Math.max(change, -reservation.reserved);
    for (const { scope, charge } of reservation.charges) {
      const account = this.#account(scope, slot);
      account.open.delete(reservation);
      if (difference < 0) charge.tokens += difference;
      else {
        const fitting = isCounted(charge, slot) ? Math.min(difference, account.free) : 0;
        charge.tokens += fitting;
        account.debt += difference - fitting;
      }
      account.pay();
      let left = difference - change;
      for (const part of reservation.added) {
        const taken = Math.min(left, part.tokens);
        left -= taken;
        if (taken > 0) account.takeBack(part.slot, taken);
      }
    }
  }

  /** Of the first id, as a call would find it. Changes nothing. */
  peek(scopes: readonly LimitScope[], nowMs: number): LimitState {
    const [first] = limitsById(scopes);
    if (first === undefined) throw new Error("no scopes");
    const slot = slotAt(nowMs);
    const account = this.#accounts.get(first.id)?.copy() ?? new Account(slot, this.#overrunSlots);
    account.advance(slot);
    account.holdTo(first.isAudited ? Infinity : first.tokens);
    return this.state(first, nowMs, account);
  }

  state(
    scope: LimitsOfId,
    nowMs: number,
    account = this.#account(scope, slotAt(nowMs)),
  ): LimitState {
    const { requests, tokens } = account.sum();
    const newest = (of: (charge: Charge) => number) => {
      const slots = account.counted().filter((charge) => of(charge) > 0);
      return Math.max(...slots.map((charge) => (charge.slot + 61) * 1_000 - nowMs), 0);
    };
    const debtMs = Math.ceil(account.debt / scope.tokens) * 61_000;
    // What audit has served beyond its limit is told.
    const least = scope.isAudited ? -Infinity : 0;
    return {
      limitRequests: scope.requests,
      limitTokens: scope.tokens,
      remainingRequests: Math.max(least, scope.requests - requests),
      remainingTokens: Math.max(least, scope.tokens - tokens),
      resetRequestsMs: newest((charge) => charge.requests),
      resetTokensMs: newest((charge) => charge.tokens) + debtMs,
    };
  }

  /** Tries each second until each scope has room: the longest of their waits. */
  #waitMs(scopes: readonly LimitsOfId[], demand: Demand, nowMs: number): number {
    const first = slotAt(nowMs);
    const waits = scopes.map((scope) => {
      const account = this.#account(scope, first).copy();
      if (fits(account, scope, demand)) return 0;
      let slot = first;
      do account.advance(++slot);
      while (slot < first + 3_600 && !fits(account, scope, demand));
      return slot * 1_000 - nowMs;
    });
    return Math.ceil(Math.max(...waits));
  }

  #account({ id, tokens, isAudited }: LimitsOfId, slot: number): Account {
    let account = this.#accounts.get(id);
    if (account === undefined) {
      account = new Account(slot, this.#overrunSlots);
      this.#accounts.set(id, account);
    }
    account.advance(slot);
    account.holdTo(isAudited ? Infinity : tokens);
    return account;
  }
}

function fits(account: Account, limits: LimitsOfId, { requests, tokens }: Demand): boolean {
  const sum = account.sum();
  const hasRequests = requests === 0 || sum.requests + requests <= limits.requests;
  return hasRequests && sum.tokens + account.debt + tokens <= limits.tokens;
}

function overrunLimit({ tokens, overrunFactor }: LimitsOfId): number {
  return tokens * overrunFactor;
}

function isCounted(charge: Charge, slot: number): boolean {
  return charge.slot >= slot - 60;
}
