import { expect, test } from "bun:test";
import { largest, sumReported, sumUsage } from "./sum-usage.ts";

const usage = { inputTokens: 5, outputTokens: 4, cachedInputTokens: 3, reasoningTokens: 2 };

test("every count of every part is in the sum", () => {
  const other = { inputTokens: 10, outputTokens: 20, cachedInputTokens: 30, reasoningTokens: 40 };
  const sum = { inputTokens: 15, outputTokens: 24, cachedInputTokens: 33, reasoningTokens: 42 };
  expect(sumUsage([usage, other])).toEqual(sum);
});

test("there is no sum of nothing, nor with a part that was not reported", () => {
  expect(sumUsage([])).toBeUndefined();
  expect(sumUsage([usage, undefined])).toBeUndefined();
  expect(sumUsage([usage, { ...usage, inputTokens: 0 }])).toBeUndefined();
});

test("what was reported can be added up without the rest", () => {
  expect(sumReported([undefined, usage, undefined, usage])?.outputTokens).toBe(8);
  expect(sumReported([undefined])).toBeUndefined();
});

test("of two reports each count is the larger one", () => {
  const other = { inputTokens: 1, outputTokens: 20, cachedInputTokens: 3, reasoningTokens: 0 };
  const both = { inputTokens: 5, outputTokens: 20, cachedInputTokens: 3, reasoningTokens: 2 };
  expect(largest(usage, other)).toEqual(both);
  expect([largest(undefined, other), largest(usage, undefined)]).toEqual([other, usage]);
});
