import type { CountedRequest, LimitScope } from "../../domain/limits/limit-scope.ts";
import type { LimitState } from "../../domain/limits/limit-state.ts";
import type {
  CountDecision,
  LimitDecision,
  LimitRequest,
  RefusedByLimit,
} from "../../store/store.ts";

/**
 * Limits as JSON, which has no infinity: null is no limit. Scopes are arrays, as each call sends
 * several.
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

export interface WireCounted {
  readonly scopes: readonly WireScope[];
  readonly slot: number;
}

export interface WireLimitRequest extends Omit<LimitRequest, "scopes" | "counted" | "mostTokens"> {
  readonly scopes: readonly WireScope[];
  readonly mostTokens: number | null;
  readonly counted: WireCounted | null;
}

type WireState = Omit<LimitState, "limitRequests" | "remainingRequests"> & {
  readonly limitRequests: number | null;
  readonly remainingRequests: number | null;
};

type WireRefusal = Omit<RefusedByLimit, "state"> & { readonly state: WireState };

/** With the slot of the admission. */
export type WireAcquired =
  { readonly isAdmitted: true; readonly state: WireState; readonly slot: number } | WireRefusal;

/** The slot in which a request was counted. */
export type WireCountDecision = { readonly isAdmitted: true; readonly slot: number } | WireRefusal;

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
  return { scopes: scopesToWire(scopes), slot };
}

export function countedFromWire({ scopes, slot }: WireCounted): CountedRequest {
  return { scopes: scopesFromWire(scopes), slot };
}

export function requestToWire(request: LimitRequest): WireLimitRequest {
  const { callId, scopes, tokens, mostTokens = null, counted } = request;
  return {
    callId,
    scopes: scopesToWire(scopes),
    tokens,
    mostTokens,
    counted: counted === undefined ? null : countedToWire(counted),
  };
}

export function requestFromWire(request: WireLimitRequest): LimitRequest {
  const { callId, scopes, tokens, mostTokens, counted } = request;
  return {
    callId,
    scopes: scopesFromWire(scopes),
    tokens,
    mostTokens: mostTokens ?? undefined,
    counted: counted === null ? undefined : countedFromWire(counted),
  };
}

export function decisionToWire(decision: LimitDecision, slot: number): WireAcquired {
  const state = stateToWire(decision.state);
  return decision.isAdmitted ? { isAdmitted: true, state, slot } : { ...decision, state };
}

export function decisionFromWire(decision: WireAcquired): LimitDecision {
  return decision.isAdmitted
    ? { isAdmitted: true, state: stateFromWire(decision.state) }
    : refusalFromWire(decision);
}

export function countDecisionToWire(decision: CountDecision): WireCountDecision {
  return decision.isAdmitted
    ? { isAdmitted: true, slot: decision.counted.slot }
    : { ...decision, state: stateToWire(decision.state) };
}

/** `scopes`: those that the worker asked for. */
export function countDecisionFromWire(
  decision: WireCountDecision,
  scopes: readonly LimitScope[],
): CountDecision {
  return decision.isAdmitted
    ? { isAdmitted: true, counted: { scopes, slot: decision.slot } }
    : refusalFromWire(decision);
}

function refusalFromWire(refusal: WireRefusal): RefusedByLimit {
  // What is undefined is absent in JSON.
  const { freeAfterMs, retryAfterMs } = refusal;
  return { ...refusal, freeAfterMs, retryAfterMs, state: stateFromWire(refusal.state) };
}

function stateToWire(state: LimitState): WireState {
  const { limitRequests, remainingRequests } = state;
  return {
    ...state,
    limitRequests: toWire(limitRequests),
    remainingRequests: toWire(remainingRequests),
  };
}

function stateFromWire(state: WireState): LimitState {
  const { limitRequests, remainingRequests } = state;
  return {
    ...state,
    limitRequests: fromWire(limitRequests),
    remainingRequests: fromWire(remainingRequests),
  };
}

function toWire(limit: number): number | null {
  return limit === Number.POSITIVE_INFINITY ? null : limit;
}

function fromWire(limit: number | null): number {
  return limit ?? Number.POSITIVE_INFINITY;
}
