import { expect, test } from "bun:test";
import { targetOf } from "../../../test/support/pipeline-fixtures.ts";
import type { Price, PriceBook } from "../../domain/money/price.ts";
import type { CapacityClass } from "../../domain/usage/usage.ts";
import { costOfCall, dearestCost } from "./call-cost.ts";
import { largest, sumReported } from "./call-usage.ts";

/** Nano-USD a token are micro-USD per million tokens by 1000. */
const known: Readonly<Record<string, Price>> = {
  "cheap/m": { input: 1_000, output: 2_000 },
  "dear/m": {
    input: 3_000,
    output: 5_000,
    long_prompt: { over_tokens: 100, input: 30_000, output: 50_000 },
  },
  "paid/m": { input: 1_000, output: 1_000, tiers: { provisioned: { input: 10, output: 10 } } },
  "fast/m": { input: 1_000, output: 1_000, tiers: { priority: { input: 2_000, output: 2_000 } } },
};
const [cheap, dear, unknown] = [targetOf("cheap"), targetOf("dear"), targetOf("other")];

function terms(
  capacityClass: CapacityClass = "on-demand",
  provisionedPool?: string,
  askedTier?: string,
) {
  const prices: PriceBook = {
    isPublished: () => true,
    find(id) {
      const price = known[id];
      return price && { price, version: 7 };
    },
  };
  return { prices, arrivedAt: 0, capacityClass, provisionedPool, askedTier };
}

function used(inputTokens: number, outputTokens: number) {
  return { inputTokens, outputTokens, cachedInputTokens: 0, reasoningTokens: 0 };
}

test("each request costs what its own target asks", () => {
  const usage = sumReported([{ ...used(10, 1), target: cheap }, used(20, 2)]);
  expect(usage).toMatchObject({ inputTokens: 30, outputTokens: 3 });
  const cost = costOfCall(usage ?? used(0, 0), dear, terms());
  expect(cost).toEqual({ costNano: 10 + 2 + 60 + 10, priceVersion: 7 });
});

test("a long prompt is one of a request, not of the sum of all", () => {
  const usage = sumReported([used(60, 1), used(60, 1), used(101, 1)]) ?? used(0, 0);
  expect(costOfCall(usage, dear, terms()).costNano).toBe(2 * (180 + 5) + 3_030 + 50);
  // Two reports on the same answer: the larger one keeps what it consists of.
  const both = largest(usage, used(60, 1)) ?? usage;
  expect(costOfCall(both, dear, terms()).costNano).toBe(3_450);
});

test("a call has no cost as soon as one of its requests has none", () => {
  const usage = sumReported([{ ...used(10, 1), target: unknown }, used(20, 2)]) ?? used(0, 0);
  expect(costOfCall(usage, cheap, terms())).toEqual({
    costNano: undefined,
    priceVersion: undefined,
  });
  expect(costOfCall(used(1, 1), undefined, terms()).costNano).toBeUndefined();
});

test("nothing used costs nothing, whatever has a price", () => {
  expect(costOfCall(used(0, 0), unknown, terms()).costNano).toBe(0);
  const usage = sumReported([{ ...used(0, 0), target: unknown }, used(1, 0)]) ?? used(0, 0);
  expect(costOfCall(usage, cheap, terms()).costNano).toBe(1);
});

test("calls within a guarantee are paid by its units, at its own pool alone", () => {
  const pooled = targetOf("dear", { pool: "p" });
  expect(costOfCall(used(9, 9), pooled, terms("provisioned", "p")).costNano).toBe(0);
  expect(costOfCall(used(9, 9), pooled, terms("provisioned", "q")).costNano).toBe(27 + 45);
  expect(costOfCall(used(9, 9), pooled, terms("spillover", "p")).costNano).toBe(27 + 45);
  const unpriced = targetOf("other", { pool: "p" });
  const ofUnits = costOfCall(used(9, 9), unpriced, terms("provisioned", "p"));
  expect(ofUnits).toMatchObject({ costNano: 0, tier: "provisioned" });
  expect(costOfCall(used(9, 9), pooled, terms("provisioned", "q")).tier).toBeUndefined();
  const paid = targetOf("paid", { pool: "p" });
  expect(costOfCall(used(50, 50), paid, terms("provisioned", "p")).costNano).toBe(1);
});

test("images cost something where a price has them; to other models they are tokens", () => {
  const prices: PriceBook = {
    isPublished: () => true,
    find: (id) => ({ price: { input: 1_000, ...(id === "cheap/m" && { image: 60 }) }, version: 2 }),
  };
  const two = { ...terms(), prices, images: 2 };
  expect(costOfCall(used(5, 0), cheap, two)).toEqual({ costNano: 5 + 120_000, priceVersion: 2 });
  expect(costOfCall(used(0, 0), cheap, two)).toEqual({ costNano: 120_000, priceVersion: 2 });
  expect(costOfCall(used(5, 0), dear, two).costNano).toBe(5);
  const pooled = targetOf("cheap", { pool: "p" });
  const ofUnits = { ...terms("provisioned", "p"), prices, images: 2 };
  expect(costOfCall(used(5, 0), pooled, ofUnits).costNano).toBe(0);
  expect(costOfCall(used(5, 0), cheap, { ...two, images: undefined }).costNano).toBe(5);
});

test("the most that a call may cost is that at its dearest target with a price", () => {
  expect(dearestCost(used(10, 10), [cheap, unknown, dear], terms()).costNano).toBe(80);
  expect(dearestCost(used(10, 10), [unknown], terms()).costNano).toBeUndefined();
});

test("a request whose answer was not read to its end has the tier that was asked for, if there is a price", () => {
  const fast = targetOf("fast");
  expect(costOfCall(used(10, 10), fast, terms("on-demand", undefined, "priority")).costNano).toBe(
    40,
  );
  expect(costOfCall(used(10, 10), fast, terms("on-demand", undefined, "flex")).costNano).toBe(20);
  const served = { ...used(10, 10), serviceTier: "default" };
  expect(costOfCall(served, fast, terms("on-demand", undefined, "priority")).costNano).toBe(20);
});
