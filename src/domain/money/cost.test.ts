import { expect, test } from "bun:test";
import { costOf } from "./cost.ts";
import type { Price } from "./price.ts";

const sonnet55: Price = {
  input: 2_000_000,
  cache_read: 100_000,
  cache_write: 2_500_000,
  cache_write_1h: 4_000_000,
  output: 10_000_000,
};
const haiku55: Price = {
  input: 100_000,
  output: 500_000,
  long_prompt: { over_tokens: 100_000, input: 500_000, output: 2_500_000 },
};
const gptOss: Price = {
  input: 150_000,
  output: 600_000,
  tiers: { priority: { input: 262_500, output: 1_050_000 } },
};
const none = { inputTokens: 0, cachedInputTokens: 0, outputTokens: 0 };

test("prices fresh input, reads, writes and output apart", () => {
  const used = {
    inputTokens: 12_000,
    cachedInputTokens: 9_000,
    cacheWriteTokens: 1_000,
    outputTokens: 500,
  };
  expect(costOf(used, sonnet55, undefined)).toBe(12_400_000);
  const us = Object.fromEntries(
    Object.entries(sonnet55).map(([name, rate]) => [name, (Number(rate) * 11) / 10]),
  );
  expect(costOf(used, us, "standard")).toBe(13_640_000);
});

test("prices writes that are kept for an hour by their own rate", () => {
  const opus48: Price = { input: 5_000_000, cache_write: 6_250_000, cache_write_1h: 10_000_000 };
  const used = { ...none, inputTokens: 9_634, cacheWriteTokens: 9_634 };
  expect(costOf({ ...used, cacheWrite1hTokens: 9_634 }, opus48, undefined)).toBe(96_340_000);
  expect(costOf({ ...used, cacheWrite1hTokens: 634 }, opus48, undefined)).toBe(
    9_000 * 6_250 + 634 * 10_000,
  );
});

test("a long prompt changes the price of the whole call, from the first token over", () => {
  const at = { ...none, inputTokens: 100_000, outputTokens: 100 };
  expect(costOf(at, haiku55, undefined)).toBe(10_050_000);
  expect(costOf({ ...at, inputTokens: 100_001 }, haiku55, undefined)).toBe(50_250_500);
});

test("prices a tier by its own rates, and one without rates not at all", () => {
  const used = { ...none, inputTokens: 1_000, outputTokens: 1_000 };
  expect(costOf(used, gptOss, "priority")).toBe(1_312_500);
  expect(costOf(used, gptOss, "default")).toBe(750_000);
  expect(costOf(used, gptOss, "flex")).toBeUndefined();
  expect(costOf(none, gptOss, "flex")).toBeUndefined();
});

test("provisioned calls are free unless the price says otherwise", () => {
  const used = { ...none, inputTokens: 1_000, cachedInputTokens: 10, outputTokens: 7 };
  expect(costOf(used, gptOss, "provisioned")).toBe(0);
  const price = { ...gptOss, tiers: { provisioned: { input: 1_000_000 } } };
  expect(costOf({ ...none, inputTokens: 3 }, price, "provisioned")).toBe(3_000);
});

test("what was used and has no price makes the cost unknown, never 0; an explicit 0 is a price", () => {
  const used = { ...none, inputTokens: 100 };
  expect(costOf({ ...used, cachedInputTokens: 1 }, gptOss, undefined)).toBeUndefined();
  expect(costOf({ ...used, cacheWriteTokens: 1 }, gptOss, undefined)).toBeUndefined();
  expect(costOf(used, {}, undefined)).toBeUndefined();
  expect(costOf(none, {}, undefined)).toBe(0);
  expect(costOf({ ...used, cachedInputTokens: 100 }, { cache_read: 0 }, undefined)).toBe(0);
});

test("rounds the sum once, half up", () => {
  // 0.3 + 0.2 nano: each part alone would be 0.
  const small = { ...none, inputTokens: 1, outputTokens: 1 };
  expect(costOf(small, { input: 300, output: 200 }, undefined)).toBe(1);
  expect(costOf(small, { input: 300, output: 199 }, undefined)).toBe(0);
  // Ten tokens of Titan v2 are 0.2 micro-USD.
  expect(costOf({ ...none, inputTokens: 10 }, { input: 20_000 }, undefined)).toBe(200);
});

test("a call of more than 9,007 USD is at most a nano-USD off", () => {
  const used = { ...none, inputTokens: 99_999_999, outputTokens: 99_999_999 };
  const rates = { input: 9_999_999_999, output: 9_999_999_997 };
  const pico = 99_999_999n * (9_999_999_999n + 9_999_999_997n);
  const exact = Number((pico + 500n) / 1_000n);
  expect(Math.abs((costOf(used, rates, undefined) ?? 0) - exact)).toBeLessThanOrEqual(1);
});
