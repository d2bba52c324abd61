import type { Limits } from "./plan.ts";
import { largestTokenCount } from "./token-weights.ts";

/** The unit of a limit. */
export type LimitUnit = "requests" | "tokens";

/**
 * One limit of a call: how much of a unit a subject, such as a key, may use in a window. A call is
 * admitted under all scopes of a list or none. Each id, unit and sort of window counts separately.
 */
export interface LimitScope {
  readonly id: string;
  readonly unit: LimitUnit;
  readonly window: LimitWindow;
  /** The limit for the whole window. `Infinity`: no limit, possible only for requests. */
  readonly limit: number;
  /**
   * Set for a scope of several owners, such as a pool: excess use by one owner is no debt of the
   * others, and expires with the second of its admission.
   */
  readonly isShared?: boolean | undefined;
  /** Refuses nothing, and use beyond it is no debt; decisions tell what it would refuse. */
  readonly isAudited?: boolean | undefined;
  /** The account whose limits are decided in one step. Undefined: those of one id are. */
  readonly owner?: string | undefined;
  /** Set when nothing is admitted while the store that all processes share cannot decide. */
  readonly isClosedAlone?: boolean | undefined;
  /** How far running calls may exceed their charges, as a multiple of the limit; undefined: any. */
  readonly overrunFactor?: number | undefined;
}

/** `minute`: a cap, never exceeded in any 60 seconds. */
export type LimitWindow = "minute" | GuaranteeTime;

/**
 * A guarantee favours its owner: use of all of it in every period is never refused. It counts one
 * second less than its period, so in the long run it admits up to 60/59 of its limits.
 */
interface GuaranteeTime {
  /** From 60 to 3600; the tokens grow in proportion. A change loses no admitted use. */
  readonly seconds: number;
}

/** A request that was counted before its model was known. */
export interface CountedRequest {
  readonly scopes: readonly LimitScope[];
  /** In the store's time. */
  readonly slot: number;
}

/**
 * A call of a model, a listing of models, or a count of tokens. A plan allows as many of each, counted
 * apart.
 */
export type RequestKind = "call" | "listing" | "count";

/** The scopes of limits in any 60 seconds. */
export function minuteScopes(
  id: string,
  { requestsPerMinute, tokensPerMinute }: Limits,
  { overrunFactor, owner, isClosedAlone, isAudited }: ScopeTerms = {},
): [LimitScope, LimitScope] {
  const shared = { id, window: "minute", owner, isClosedAlone, isAudited } as const;
  return [
    { ...shared, unit: "requests", limit: requestsPerMinute },
    { ...shared, unit: "tokens", limit: tokensPerMinute, overrunFactor },
  ];
}

/** What the scopes of an account have in common. */
export type ScopeTerms = Pick<
  LimitScope,
  "overrunFactor" | "owner" | "isClosedAlone" | "isAudited"
>;

/** What is left in the scopes of one id after a decision, for the `x-ratelimit-*` headers. */
export interface LimitState {
  /** `Infinity`: no limit, possible only for requests. */
  readonly limitRequests: number;
  readonly limitTokens: number;
  /** Below 0 what audit has served beyond the limit; `usesOf` tells people and headers 0. */
  readonly remainingRequests: number;
  readonly remainingTokens: number;
  /** Milliseconds until the whole window is free again, if nothing more is used. */
  readonly resetRequestsMs: number;
  readonly resetTokensMs: number;
}

export interface UnitUse {
  readonly limit: number;
  /** At least 0, even while more is left than a limit that was lowered allows. */
  readonly used: number;
  readonly remaining: number;
  readonly resetMs: number;
}

/** What is used in the scopes of one id, by unit. */
export function usesOf(state: LimitState): Readonly<Record<LimitUnit, UnitUse>> {
  const { limitRequests, remainingRequests, resetRequestsMs } = state;
  const { limitTokens, remainingTokens, resetTokensMs } = state;
  return {
    requests: useOf(limitRequests, remainingRequests, resetRequestsMs),
    tokens: useOf(limitTokens, remainingTokens, resetTokensMs),
  };
}

function useOf(limit: number, remaining: number, resetMs: number): UnitUse {
  return {
    limit,
    used: Math.max(0, limit - remaining),
    remaining: Math.max(0, remaining),
    resetMs,
  };
}

export function isTokenCount(tokens: number): boolean {
  return Number.isInteger(tokens) && tokens >= 0 && tokens <= largestTokenCount;
}
