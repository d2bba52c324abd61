import type { CountedRequest, LimitScope } from "../../domain/limits/limit-scope.ts";
import type { LimitState } from "../../domain/limits/limit-state.ts";
import type { LeaseWish } from "../../store/coordinator/leases/lease-account.ts";
import type {
  CountDecision,
  LimitDecision,
  LimitRequest,
  RefusedByLimit,
} from "../../store/store.ts";

/**
 * Limits as JSON, which has no infinity: null means no limit. Scopes are arrays, because each call
 * sends several.
 */
export type WireScope = readonly [
  id: string,
  unit: "requests" | "tokens",
  /** 0: a minute. */
  guaranteeSeconds: number,
  limit: number | null,
  isShared: boolean,
  overrunFactor: number | null,
];

export type WireCounted = readonly [slot: number, scopes: readonly WireScope[]];

/** What a worker expects to admit by itself under these scopes within a second. */
export type WireWish = readonly [
  /** The worker's own id of these scopes. */
  account: number,
  requests: number,
  tokens: number,
  overrun: number,
];

export type WireLimitRequest = readonly [
  callId: string,
  tokens: number,
  mostTokens: number | null,
  /** The slot in which the request was counted; null: it was not. */
  countedSlot: number | null,
  scopes: readonly WireScope[],
  wish: WireWish | null,
];

/** What is left of requests, then of tokens. */
export type WireState = readonly [
  limitRequests: number | null,
  remainingRequests: number | null,
  resetRequestsMs: number,
  limitTokens: number,
  remainingTokens: number,
  resetTokensMs: number,
];

type WireRefusal = Omit<RefusedByLimit, "state"> & { readonly state: WireState };

/** The slot of the admission and what is left. */
export type WireAcquired = readonly [slot: number, state: WireState] | WireRefusal;

/** The slot in which a request was counted. */
export type WireCountDecision = number | WireRefusal;

export function scopesToWire(scopes: readonly LimitScope[]): readonly WireScope[] {
  return scopes.map(({ id, unit, window, limit, isShared = false, overrunFactor }) => [
    id,
    unit,
    window === "minute" ? 0 : window.seconds,
    toWire(limit),
    isShared,
    overrunFactor ?? null,
  ]);
}

export function scopesFromWire(scopes: readonly WireScope[]): readonly LimitScope[] {
  return scopes.map(([id, unit, seconds, limit, isShared, overrunFactor]) => ({
    id,
    unit,
    window: seconds === 0 ? "minute" : { seconds },
    limit: fromWire(limit),
    isShared,
    overrunFactor: overrunFactor ?? undefined,
  }));
}

export function countedToWire({ scopes, slot }: CountedRequest): WireCounted {
  return [slot, scopesToWire(scopes)];
}

export function countedFromWire([slot, scopes]: WireCounted): CountedRequest {
  return { scopes: scopesFromWire(scopes), slot };
}

export function requestToWire(request: LimitRequest, wish?: LeaseWish): WireLimitRequest {
  const { callId, scopes, tokens, mostTokens = null, counted } = request;
  const wished = wish && wishToWire(wish);
  return [callId, tokens, mostTokens, counted?.slot ?? null, scopesToWire(scopes), wished ?? null];
}

function wishToWire({ account, requests, tokens, overrun }: LeaseWish): WireWish {
  return [account, requests, tokens, overrun];
}

export function requestFromWire(request: WireLimitRequest): LimitRequest {
  const [callId, tokens, mostTokens, countedSlot, wireScopes] = request;
  const scopes = scopesFromWire(wireScopes);
  const counted = countedSlot === null ? undefined : { scopes, slot: countedSlot };
  return { callId, scopes, tokens, mostTokens: mostTokens ?? undefined, counted };
}

export function wishOf([, , , , , wish]: WireLimitRequest): WireWish | undefined {
  return wish ?? undefined;
}

export function decisionToWire(decision: LimitDecision, slot: number): WireAcquired {
  const state = stateToWire(decision.state);
  return decision.isAdmitted ? [slot, state] : { ...decision, state };
}

export function decisionFromWire(decision: WireAcquired): LimitDecision {
  return "isAdmitted" in decision
    ? refusalFromWire(decision)
    : { isAdmitted: true, state: stateFromWire(decision[1]) };
}

export function countDecisionToWire(decision: CountDecision): WireCountDecision {
  return decision.isAdmitted
    ? decision.counted.slot
    : { ...decision, state: stateToWire(decision.state) };
}

/** `scopes`: the scopes that the worker asked about. */
export function countDecisionFromWire(
  decision: WireCountDecision,
  scopes: readonly LimitScope[],
): CountDecision {
  return typeof decision === "number"
    ? { isAdmitted: true, counted: { scopes, slot: decision } }
    : refusalFromWire(decision);
}

export function stateToWire(state: LimitState): WireState {
  return [
    toWire(state.limitRequests),
    toWire(state.remainingRequests),
    state.resetRequestsMs,
    state.limitTokens,
    state.remainingTokens,
    state.resetTokensMs,
  ];
}

export function stateFromWire(state: WireState): LimitState {
  const [limitRequests, remainingRequests, resetRequestsMs, ...ofTokens] = state;
  const [limitTokens, remainingTokens, resetTokensMs] = ofTokens;
  return {
    limitRequests: fromWire(limitRequests),
    remainingRequests: fromWire(remainingRequests),
    resetRequestsMs,
    limitTokens,
    remainingTokens,
    resetTokensMs,
  };
}

function refusalFromWire(refusal: WireRefusal): RefusedByLimit {
  // JSON omits undefined fields.
  const { freeAfterMs, retryAfterMs } = refusal;
  return { ...refusal, freeAfterMs, retryAfterMs, state: stateFromWire(refusal.state) };
}

function toWire(limit: number): number | null {
  return limit === Number.POSITIVE_INFINITY ? null : limit;
}

function fromWire(limit: number | null): number {
  return limit ?? Number.POSITIVE_INFINITY;
}
