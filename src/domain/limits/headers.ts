import { type LimitState, usesOf } from "./limit-scope.ts";

/** OpenAI's headers, with Go's durations. Without a limit on requests, theirs are absent. */
export function rateLimitHeaders(state: LimitState): Record<string, string> {
  const { requests, tokens } = usesOf(state);
  const ofTokens = {
    "x-ratelimit-limit-tokens": String(tokens.limit),
    "x-ratelimit-remaining-tokens": String(tokens.remaining),
    "x-ratelimit-reset-tokens": formatGoDuration(tokens.resetMs),
  };
  if (requests.limit === Infinity) return ofTokens;
  return {
    "x-ratelimit-limit-requests": String(requests.limit),
    "x-ratelimit-remaining-requests": String(requests.remaining),
    "x-ratelimit-reset-requests": formatGoDuration(requests.resetMs),
    ...ofTokens,
  };
}

/** OpenAI's SDKs ignore a longer wait, and Claude Code gives up. A full window frees after 61 s. */
const longestWaitMs = 60_000;

/**
 * Headers of a refusal, at most 60 s. OpenAI's clients read `retry-after-ms` first, others
 * `retry-after`. For a request that can never fit (undefined), `x-should-retry` tells those clients
 * not to retry.
 */
export function retryHeaders(retryAfterMs: number | undefined): Record<string, string> {
  if (retryAfterMs === undefined) return { "x-should-retry": "false" };
  const waitMs = Math.min(Math.max(1, Math.ceil(retryAfterMs)), longestWaitMs);
  return {
    "retry-after": String(Math.ceil(waitMs / 1_000)),
    "retry-after-ms": String(waitMs),
  };
}

/** `17ms`, `1s`, `18.642s`, `6m0s`, `1h0m0s`; parts of a millisecond are rounded up. */
export function formatGoDuration(durationMs: number): string {
  const wholeMs = Math.max(0, Math.ceil(durationMs));
  if (wholeMs === 0) return "0s";
  if (wholeMs < 1_000) return `${wholeMs}ms`;
  const minutes = Math.floor(wholeMs / 60_000);
  const seconds = `${(wholeMs - minutes * 60_000) / 1_000}s`;
  if (minutes === 0) return seconds;
  if (minutes < 60) return `${minutes}m${seconds}`;
  return `${Math.floor(minutes / 60)}h${minutes % 60}m${seconds}`;
}
