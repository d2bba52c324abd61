import type { Limits } from "./plan.ts";

export type LimitDimension = "requests" | "tokens";

/** What a scope has left after a decision; the source of the `x-ratelimit-*` headers. */
export interface LimitState {
  readonly limits: Limits;
  readonly remainingRequests: number;
  readonly remainingTokens: number;
  /** Milliseconds until all of the window is free again, if nothing more is used. */
  readonly resetRequestsMs: number;
  readonly resetTokensMs: number;
}
