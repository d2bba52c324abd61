import { expect, test } from "bun:test";
import { usesOf } from "./limit-scope.ts";

test("use is never below zero, as when more is left than a lowered limit allows", () => {
  const state = {
    limitRequests: 10,
    remainingRequests: 12,
    resetRequestsMs: 0,
    limitTokens: 100,
    remainingTokens: 40,
    resetTokensMs: 1_500,
  };
  expect(usesOf(state)).toEqual({
    requests: { limit: 10, used: 0, remaining: 12, resetMs: 0 },
    tokens: { limit: 100, used: 60, remaining: 40, resetMs: 1_500 },
  });
});
