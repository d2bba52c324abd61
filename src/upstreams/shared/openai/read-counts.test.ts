import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { readCounts, type ProviderCounts } from "./read-counts.ts";

type Count = number | undefined;

/** In, out, total, cached, written, reasoning, as a provider reports them. */
function read(...[input, output, total, cached, cacheWrite, reasoning]: readonly Count[]) {
  const counts: ProviderCounts = { input, output, total, cached, cacheWrite, reasoning };
  const usage = readCounts(counts);
  return usage && [usage.inputTokens, usage.outputTokens, usage.reasoningTokens, usage.isBounded];
}

describe("what providers mean", () => {
  test.each([
    ["OpenAI: details are parts", [100, 50, 150, 40, undefined, 30], [100, 50, 30]],
    ["xAI: reasoning on top, in the total", [32, 9, 135, 0, undefined, 94], [32, 103, 94]],
    ["xAI: the same without a total", [32, 9, undefined, 0, undefined, 94], [32, 103, 94]],
    ["Gemini: reasoning in the total alone", [21, 0, 81, 0, undefined, 0], [21, 60, 60]],
    ["Gemini: reasoning beside an answer", [21, 10, 81, 0, undefined, 0], [21, 60, 50]],
    ["reasoning within the output", [10, 50, 60, 0, undefined, 40], [10, 50, 40]],
    ["cached input on top, in the total", [10, 5, 1_015, 1_000, undefined, 0], [1_010, 5, 0]],
    ["cached input on top, no total", [10, 5, undefined, 1_000, undefined, 0], [1_010, 5, 0]],
    ["both caches on top", [10, 5, 1_115, 1_000, 100, 0], [1_110, 5, 0]],
    ["caches and reasoning on top", [10, 5, 1_145, 1_000, 100, 30], [1_110, 35, 30]],
    ["a total of 0", [10, 5, 0, 0, undefined, 0], [10, 5, 0]],
    ["only a count of output", [undefined, 5, undefined, 0, undefined, 0], [0, 5, 0]],
    ["only a count of input and a total", [10, undefined, 25, 0, undefined, 0], [10, 15, 15]],
  ] as const)("%s", (_, counts, [input, output, reasoning]) => {
    expect(read(...counts)).toEqual([input, output, reasoning, undefined]);
  });

  test("without a count there is no usage", () => {
    expect(read(undefined, undefined, 15, 1, 1, 1)).toBeUndefined();
  });

  test("details that no convention explains are limited and marked", () => {
    expect(read(10, 5, 15, 1_000, undefined, 0)).toEqual([10, 5, 0, true]);
    expect(read(10, 5, 15, 0, undefined, 1_000)).toEqual([10, 5, 5, true]);
  });
});

const anyCount = fc.oneof(fc.nat(300), fc.nat(), fc.constant(undefined));

test("counts are never below the provider's, and details never above their counts", () => {
  fc.assert(
    fc.property(
      fc.record({
        input: anyCount,
        output: anyCount,
        total: anyCount,
        cached: anyCount,
        cacheWrite: anyCount,
        reasoning: anyCount,
      }),
      (counts) => {
        const usage = readCounts(counts);
        if (usage === undefined) return;
        expect(usage.inputTokens).toBeGreaterThanOrEqual(counts.input ?? 0);
        expect(usage.outputTokens).toBeGreaterThanOrEqual(counts.output ?? 0);
        const cache = usage.cachedInputTokens + (usage.cacheWriteTokens ?? 0);
        expect(cache).toBeLessThanOrEqual(usage.inputTokens);
        expect(usage.reasoningTokens).toBeLessThanOrEqual(usage.outputTokens);
      },
    ),
  );
});
