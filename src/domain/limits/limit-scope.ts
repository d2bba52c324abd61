import type { Limits } from "./plan.ts";

/** What is counted. */
export type LimitUnit = "requests" | "tokens";

/**
 * One limit of a call: how much of a unit something, such as a key, may use in a window. A call is
 * admitted under a list of them, all or none. Each id, unit and sort of window counts apart.
 */
export interface LimitScope {
  readonly id: string;
  readonly unit: LimitUnit;
  readonly window: LimitWindow;
  /** Of all the time of the window. Requests may be without limit: `Infinity`. */
  readonly limit: number;
  /**
   * Of several owners, such as a pool: what one uses beyond it is no debt of the others, and leaves
   * with the second that admitted it.
   */
  readonly isShared?: boolean;
  /**
   * How many times the limit all calls under way may use beyond what is charged for them. Undefined:
   * without end.
   */
  readonly overrunFactor?: number | undefined;
}

/** `minute`: a cap, never exceeded in any 60 seconds, wherever they begin. */
export type LimitWindow = "minute" | GuaranteeTime;

/**
 * A guarantee errs for its owner: who uses it up and comes again after its time is never refused.
 * It counts one second less than its time, so in the long run it admits up to 60/59 of its limits.
 */
export interface GuaranteeTime {
  /**
   * From 60 to 3600: a longer time has as many more tokens. It may change with every request;
   * nothing that was admitted is forgotten by that.
   */
  readonly seconds: number;
}

/** A request that was counted before it was known what it asks for. */
export interface CountedRequest {
  /** Of the whole call. */
  readonly scopes: readonly LimitScope[];
  /** In the store's own time. */
  readonly slot: number;
}

/** A call of a model, or one of the listings, as many of which a plan allows beside its calls. */
export type RequestKind = "call" | "listing";

/** What something may use in any 60 seconds. */
export function minuteScopes(
  id: string,
  { requestsPerMinute, tokensPerMinute }: Limits,
  overrunFactor?: number,
): [LimitScope, LimitScope] {
  return [
    { id, unit: "requests", window: "minute", limit: requestsPerMinute },
    { id, unit: "tokens", window: "minute", limit: tokensPerMinute, overrunFactor },
  ];
}
