import type { LimitState } from "../../domain/limits/limit-scope.ts";

/** Anthropic's headers of the limits; `nowMs` is the wall clock. Without a limit, none of it. */
export function messagesLimitHeaders(state: LimitState, nowMs: number): Record<string, string> {
  return {
    ...(state.limitRequests !== Infinity && {
      "anthropic-ratelimit-requests-limit": String(state.limitRequests),
      "anthropic-ratelimit-requests-remaining": String(state.remainingRequests),
      "anthropic-ratelimit-requests-reset": timeOf(nowMs + state.resetRequestsMs),
    }),
    "anthropic-ratelimit-tokens-limit": String(state.limitTokens),
    "anthropic-ratelimit-tokens-remaining": String(state.remainingTokens),
    "anthropic-ratelimit-tokens-reset": timeOf(nowMs + state.resetTokensMs),
  };
}

/** RFC 3339 in whole seconds, rounded up. */
function timeOf(ms: number): string {
  return `${new Date(Math.ceil(ms / 1000) * 1000).toISOString().slice(0, 19)}Z`;
}
