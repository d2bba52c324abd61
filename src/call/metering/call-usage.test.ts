import { expect, test } from "bun:test";
import { largest, sumReported, sumUsage } from "./call-usage.ts";

const usage = { inputTokens: 5, outputTokens: 4, cachedInputTokens: 3, reasoningTokens: 2 };

test("the sum includes every count of every part", () => {
  const other = { inputTokens: 10, outputTokens: 20, cachedInputTokens: 30, reasoningTokens: 40 };
  const sum = { inputTokens: 15, outputTokens: 24, cachedInputTokens: 33, reasoningTokens: 42 };
  expect(sumUsage([usage, other])).toEqual({ ...sum, requests: [usage, other] });
});

test("there is no sum without parts or with an unreported part", () => {
  expect(sumUsage([])).toBeUndefined();
  expect(sumUsage([usage, undefined])).toBeUndefined();
  expect(sumUsage([usage, { ...usage, inputTokens: 0 }])).toBeUndefined();
});

test("reported parts can be summed without the others", () => {
  expect(sumReported([undefined, usage, undefined, usage])?.outputTokens).toBe(8);
  expect(sumReported([undefined])).toBeUndefined();
});

test("the larger of two reports is taken for each count", () => {
  const other = { inputTokens: 1, outputTokens: 20, cachedInputTokens: 3, reasoningTokens: 0 };
  const both = { inputTokens: 5, outputTokens: 20, cachedInputTokens: 3, reasoningTokens: 2 };
  expect(largest(usage, other)).toEqual(both);
  expect([largest(undefined, other), largest(usage, undefined)]).toEqual([other, usage]);
});
