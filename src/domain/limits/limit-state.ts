/** What the scopes of one id have left after a decision; the source of the `x-ratelimit-*` headers. */
export interface LimitState {
  /** `Infinity`: none, which may be of requests alone. */
  readonly limitRequests: number;
  readonly limitTokens: number;
  readonly remainingRequests: number;
  readonly remainingTokens: number;
  /** Milliseconds until all of the window is free again, if nothing more is used. */
  readonly resetRequestsMs: number;
  readonly resetTokensMs: number;
}
