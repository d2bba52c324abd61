/** What is left in the scopes of one id after a decision, for the `x-ratelimit-*` headers. */
export interface LimitState {
  /** `Infinity`: no limit, possible only for requests. */
  readonly limitRequests: number;
  readonly limitTokens: number;
  readonly remainingRequests: number;
  readonly remainingTokens: number;
  /** Milliseconds until the whole window is free again, if nothing more is used. */
  readonly resetRequestsMs: number;
  readonly resetTokensMs: number;
}
