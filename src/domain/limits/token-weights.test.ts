import fc from "fast-check";
import { describe, expect, test } from "bun:test";
import type { Model, Target } from "../model.ts";
import type { TokenUsage } from "../usage/usage.ts";
import {
  bedrockWeights,
  callWeights,
  dearestTokens,
  outputWithin,
  planTokens,
} from "./token-weights.ts";

const plain: Target = { id: "up/m", upstream: "up", model: "m", priority: 1, weight: 1 };
const claude: Target = { ...plain, id: "up/claude", outputQuotaWeight: 5 };
const modelAt = (...targets: readonly Target[]) => ({ targets }) as Model;
const usageOf = (usage: Partial<TokenUsage>): TokenUsage => ({
  inputTokens: 0,
  outputTokens: 0,
  cachedInputTokens: 0,
  reasoningTokens: 0,
  ...usage,
});

test("without weights each token counts one", () => {
  const usage = usageOf({ inputTokens: 70, cachedInputTokens: 60, outputTokens: 7 });
  expect(planTokens(undefined, usage, claude)).toBe(77);
  expect(dearestTokens(undefined, 70, 7)).toBe(77);
});

test("each part of a call counts by its weight, and the sum is rounded up once", () => {
  const weights = callWeights({ cachedInput: 10, cacheWrite: 125, output: 433 }, [modelAt(plain)]);
  const usage = usageOf({
    inputTokens: 107,
    cachedInputTokens: 90,
    cacheWriteTokens: 7,
    outputTokens: 3,
  });
  // 10 + 9 + 8.75 + 12.99
  expect(planTokens(weights, usage, plain)).toBe(41);
  expect(dearestTokens(weights, 107, 3)).toBe(Math.ceil(107 * 1.25 + 3 * 4.33));
});

test("Bedrock's terms count output by the model that served, and reserve by the dearest", () => {
  const weights = callWeights(bedrockWeights, [modelAt(plain), modelAt(claude)]);
  const usage = usageOf({ inputTokens: 1_000, cachedInputTokens: 900, outputTokens: 10 });
  expect(planTokens(weights, usage, plain)).toBe(110);
  expect(planTokens(weights, usage, claude)).toBe(150);
  expect(planTokens(weights, usage, undefined)).toBe(110);
  expect(dearestTokens(weights, 1_000, 10)).toBe(1_050);
  const requests = [usageOf({ outputTokens: 4, target: claude }), usageOf({ outputTokens: 6 })];
  expect(planTokens(weights, usageOf({ outputTokens: 10, requests }), plain)).toBe(26);
});

test("counts of an upstream that contradict each other never count less than nothing", () => {
  const weights = callWeights({ cachedInput: 0, cacheWrite: 0, output: 0 }, [modelAt(plain)]);
  const usage = usageOf({ inputTokens: 5, cachedInputTokens: 50, cacheWriteTokens: 70 });
  expect(planTokens(weights, usage, plain)).toBe(0);
  const dear = callWeights({ cachedInput: 0, cacheWrite: 200, output: 100 }, [modelAt(plain)]);
  expect(planTokens(dear, usageOf({ inputTokens: 5, cacheWriteTokens: 70 }), plain)).toBe(10);
});

test("what is left of a limit is enough for so many output tokens", () => {
  const weights = callWeights({ cachedInput: 0, cacheWrite: 100, output: 300 }, [modelAt(plain)]);
  expect(outputWithin(weights, 100)).toBe(33);
  expect(outputWithin({ ...weights, output: 0 }, 0)).toBe(Infinity);
  expect(outputWithin(undefined, 100)).toBe(100);
});

describe("for all weights and all usage", () => {
  const weight = fc.integer({ min: 0, max: 10_000 });
  const plan = fc.record({ cachedInput: weight, cacheWrite: weight, output: weight });
  const tokens = fc.integer({ min: 0, max: 10_000_000 });
  const usages = fc.record({
    inputTokens: tokens,
    cachedInputTokens: tokens,
    cacheWriteTokens: tokens,
    outputTokens: tokens,
    reasoningTokens: fc.constant(0),
  });

  test("no call counts more than was reserved for its tokens", () => {
    fc.assert(
      fc.property(plan, usages, (weights, usage) => {
        const of = callWeights(weights, [modelAt(plain)]);
        const used = planTokens(of, usage, plain);
        expect(used).toBeLessThanOrEqual(dearestTokens(of, usage.inputTokens, usage.outputTokens));
      }),
    );
  });

  test("sums are whole numbers, at most a token above the exact sum", () => {
    fc.assert(
      fc.property(plan, usages, (weights, usage) => {
        const cached = Math.min(usage.cachedInputTokens, usage.inputTokens);
        const written = Math.min(usage.cacheWriteTokens, usage.inputTokens - cached);
        const exact =
          BigInt(usage.inputTokens - cached - written) * 100n +
          BigInt(cached) * BigInt(weights.cachedInput) +
          BigInt(written) * BigInt(weights.cacheWrite) +
          BigInt(usage.outputTokens) * BigInt(weights.output);
        const used = BigInt(planTokens(callWeights(weights, [modelAt(plain)]), usage, plain));
        expect(used * 100n >= exact && used * 100n < exact + 100n).toBe(true);
      }),
    );
  });
});
