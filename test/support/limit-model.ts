import type { WindowSlot } from "../../src/domain/refusal.ts";
import type { LimitState } from "../../src/domain/limit-state.ts";
import { slotAt } from "../../src/limits/window.ts";
import type { LimitDecision, LimitRequest, LimitScope } from "../../src/storage/store.ts";

interface Charge {
  readonly scopeId: string;
  readonly slot: number;
  readonly requests: number;
  tokens: number;
}

interface Reservation {
  readonly atMs: number;
  readonly slot: number;
  readonly tokens: number;
  readonly charges: readonly Charge[];
}

/**
 * The rules of the limiter in their plainest form, slow and without bounds: a list of all charges
 * ever made, summed anew for every question. Written apart from the real one, to compare with it.
 */
export class LimitModel {
  readonly #reservationTtlMs: number;
  readonly #charges: Charge[] = [];
  readonly #reservations = new Map<string, Reservation>();

  constructor(reservationTtlMs: number) {
    this.#reservationTtlMs = reservationTtlMs;
  }

  acquire(request: LimitRequest, nowMs: number): LimitDecision {
    const { callId, scopes, tokens } = request;
    const slot = slotAt(nowMs);
    const tooSmall = scopes.find(
      ({ limits }) => limits.tokensPerMinute < tokens || limits.requestsPerMinute < 1,
    );
    const refusing = tooSmall ?? scopes.find((scope) => !this.#fits(scope, tokens, slot));
    if (refusing !== undefined) {
      const isOverRequests =
        tooSmall === undefined
          ? this.#sum(refusing.id, slot).requests + 1 > refusing.limits.requestsPerMinute
          : refusing.limits.tokensPerMinute >= tokens;
      const waitMs = tooSmall === undefined ? this.#waitMs(request, nowMs) : undefined;
      return {
        isAdmitted: false,
        scopeId: refusing.id,
        dimension: isOverRequests ? "requests" : "tokens",
        freeAfterMs: waitMs,
        retryAfterMs: waitMs,
        state: this.state(refusing, nowMs),
        slots: this.#slots(refusing.id, nowMs),
      };
    }
    const charges = scopes.map(({ id }) => ({ scopeId: id, slot, requests: 1, tokens }));
    this.#charges.push(...charges);
    this.#reservations.set(callId, { atMs: nowMs, slot, tokens, charges });
    const first = scopes[0];
    if (first === undefined) throw new Error("no scopes");
    return { isAdmitted: true, state: this.state(first, nowMs) };
  }

  settle(callId: string, tokens: number, nowMs: number): void {
    const reservation = this.#reservations.get(callId);
    this.#reservations.delete(callId);
    if (reservation === undefined || nowMs - reservation.atMs >= this.#reservationTtlMs) return;
    const slot = slotAt(nowMs);
    const overrun = tokens - reservation.tokens;
    for (const charge of reservation.charges) {
      if (isCounted(charge, slot)) charge.tokens = tokens;
      else if (overrun > 0) {
        this.#charges.push({ scopeId: charge.scopeId, slot, requests: 0, tokens: overrun });
      }
    }
  }

  state({ id, limits }: LimitScope, nowMs: number): LimitState {
    const slot = slotAt(nowMs);
    const { requests, tokens } = this.#sum(id, slot);
    const newest = (of: (charge: Charge) => number) => {
      const slots = this.#counted(id, slot).filter((charge) => of(charge) > 0);
      return Math.max(...slots.map((charge) => (charge.slot + 61) * 1_000 - nowMs), 0);
    };
    return {
      limits,
      remainingRequests: Math.max(0, limits.requestsPerMinute - requests),
      remainingTokens: Math.max(0, limits.tokensPerMinute - tokens),
      resetRequestsMs: newest((charge) => charge.requests),
      resetTokensMs: newest((charge) => charge.tokens),
    };
  }

  #slots(scopeId: string, nowMs: number): WindowSlot[] {
    const bySlot = new Map<number, WindowSlot>();
    const charges = this.#counted(scopeId, slotAt(nowMs));
    for (const { slot, requests, tokens } of charges.toSorted((a, b) => a.slot - b.slot)) {
      const before = bySlot.get(slot);
      bySlot.set(slot, {
        ageMs: Math.floor(nowMs - slot * 1_000),
        requests: requests + (before?.requests ?? 0),
        tokens: tokens + (before?.tokens ?? 0),
      });
    }
    return [...bySlot.values()].filter(({ requests, tokens }) => requests > 0 || tokens > 0);
  }

  /** Tries one second after the other until all scopes have room. */
  #waitMs({ scopes, tokens }: LimitRequest, nowMs: number): number {
    let slot = slotAt(nowMs);
    while (!scopes.every((scope) => this.#fits(scope, tokens, slot))) slot++;
    return Math.ceil(slot * 1_000 - nowMs);
  }

  #fits({ id, limits }: LimitScope, tokens: number, slot: number): boolean {
    const sum = this.#sum(id, slot);
    return (
      sum.requests + 1 <= limits.requestsPerMinute && sum.tokens + tokens <= limits.tokensPerMinute
    );
  }

  #sum(scopeId: string, slot: number): { requests: number; tokens: number } {
    let requests = 0;
    let tokens = 0;
    for (const charge of this.#counted(scopeId, slot)) {
      requests += charge.requests;
      tokens += charge.tokens;
    }
    return { requests, tokens };
  }

  #counted(scopeId: string, slot: number): Charge[] {
    return this.#charges.filter((charge) => charge.scopeId === scopeId && isCounted(charge, slot));
  }
}

function isCounted(charge: Charge, slot: number): boolean {
  return charge.slot >= slot - 60;
}
