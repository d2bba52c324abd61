import { expect, test } from "bun:test";
import { formatGoDuration, rateLimitHeaders, retryHeaders } from "./headers.ts";

test.each([
  [-5, "0s"],
  [0, "0s"],
  [0.2, "1ms"],
  [17, "17ms"],
  [999, "999ms"],
  [999.5, "1s"],
  [1_000, "1s"],
  [1_500, "1.5s"],
  [18_642, "18.642s"],
  [59_999, "59.999s"],
  [60_000, "1m0s"],
  [60_050, "1m0.05s"],
  [61_001, "1m1.001s"],
  [360_000, "6m0s"],
  [3_599_999.1, "1h0m0s"],
  [3_600_000, "1h0m0s"],
  [5_430_250, "1h30m30.25s"],
  [90_000_000, "25h0m0s"],
])("%d ms is written as Go writes it: %s", (durationMs, text) => {
  expect(formatGoDuration(durationMs)).toBe(text);
});

test("a window's state becomes OpenAI's six headers", () => {
  const headers = rateLimitHeaders({
    limitRequests: 60,
    limitTokens: 100_000,
    remainingRequests: 59,
    remainingTokens: 98_765,
    resetRequestsMs: 60_250.5,
    resetTokensMs: 17,
  });
  expect(headers).toEqual({
    "x-ratelimit-limit-requests": "60",
    "x-ratelimit-limit-tokens": "100000",
    "x-ratelimit-remaining-requests": "59",
    "x-ratelimit-remaining-tokens": "98765",
    "x-ratelimit-reset-requests": "1m0.251s",
    "x-ratelimit-reset-tokens": "17ms",
  });
});

test("without a limit on requests, their headers are absent", () => {
  const headers = rateLimitHeaders({
    limitRequests: Infinity,
    limitTokens: 200_000,
    remainingRequests: Infinity,
    remainingTokens: 150_000,
    resetRequestsMs: 60_000,
    resetTokensMs: 60_000,
  });
  expect(headers).toEqual({
    "x-ratelimit-limit-tokens": "200000",
    "x-ratelimit-remaining-tokens": "150000",
    "x-ratelimit-reset-tokens": "1m0s",
  });
});

test.each([
  [0, "1", "1"],
  [0.1, "1", "1"],
  [1_000, "1", "1000"],
  [1_000.1, "2", "1001"],
  [41_250, "42", "41250"],
  [61_000, "60", "60000"],
  [3_600_000, "60", "60000"],
])(
  "a wait of %d ms is rounded up in both units, at most a minute",
  (waitMs, seconds, milliseconds) => {
    expect(retryHeaders(waitMs)).toEqual({
      "retry-after": seconds,
      "retry-after-ms": milliseconds,
    });
  },
);

test("a request that never fits gets no time and must not be retried", () => {
  expect(retryHeaders(undefined)).toEqual({ "x-should-retry": "false" });
});
