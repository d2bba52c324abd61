import { expect, test } from "bun:test";
import { boundedUsage } from "./bounded-usage.ts";

test("usage beyond the bounds is limited and marked; other usage stays as it is", () => {
  const bounds = { inputTokens: 1_000, outputTokens: 10, reasoningTokens: 500 };
  const usage = { inputTokens: 900, outputTokens: 110, cachedInputTokens: 0, reasoningTokens: 100 };
  expect(boundedUsage(usage, bounds)).toBe(usage);
  const absurd = {
    inputTokens: 1e9,
    outputTokens: 1e9,
    cachedInputTokens: 1e9,
    reasoningTokens: 0,
  };
  expect(boundedUsage(absurd, bounds)).toEqual({
    inputTokens: 1_000,
    outputTokens: 10,
    cachedInputTokens: 1_000,
    reasoningTokens: 0,
    isBounded: true,
  });
  const thoughts = { ...absurd, reasoningTokens: 1e9 };
  expect(boundedUsage(thoughts, bounds)).toMatchObject({ outputTokens: 500, reasoningTokens: 500 });
});
