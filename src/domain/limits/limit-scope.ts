import type { Limits } from "./plan.ts";

/** Something that is limited, such as one key, and what it may use in any 60 seconds. */
export interface LimitScope {
  readonly id: string;
  /** Of a minute. Requests may be without limit: `Infinity`. */
  readonly limits: Limits;
  /**
   * Of several owners, such as a pool: what one uses beyond it is no debt of the others, and leaves
   * with the second that admitted it.
   */
  readonly isShared?: boolean;
  /** Undefined: a cap, never exceeded in any 60 seconds, wherever they begin. */
  readonly guarantee?: GuaranteeTime | undefined;
  /**
   * How many times the limit all calls under way may use beyond what is charged for them. Undefined:
   * without end.
   */
  readonly overrunFactor?: number | undefined;
}

/**
 * A guarantee errs for its owner: who uses it up and comes again after its time is never refused.
 * It counts one second less than its time, so in the long run it admits up to 60/59 of its limits.
 * A cap and a guarantee of one id count apart.
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
  readonly scopes: readonly LimitScope[];
  /** In the store's own time. */
  readonly slot: number;
}

/** A call of a model, or one of the listings, as many of which a plan allows beside its calls. */
export type RequestKind = "call" | "listing";
