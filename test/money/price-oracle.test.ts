import { expect } from "bun:test";
import fc from "fast-check";
import { targetPriceSchema } from "../../src/config/sections/prices.ts";
import { costOf } from "../../src/domain/money/cost.ts";
import { sizeOf, testNeeding } from "../support/requirement.ts";

const exactNano = Math.floor(Number.MAX_SAFE_INTEGER / 1_000);
const calls = sizeOf({ quick: 20_000, all: 100_000, measured: 100_000 });

/** USD as an operator writes it; small numbers of digits and edges come often. */
const usd = fc
  .oneof(
    fc.constantFrom(0, 1, 499_999, 500_000, 1_000_000, 10_000_000_000),
    fc.integer({ min: 0, max: 30_000_000 }),
    fc.integer({ min: 0, max: 10_000_000_000 }),
  )
  .map((micro) => `${Math.floor(micro / 1e6)}.${String(micro % 1e6).padStart(6, "0")}`);
const someRates = {
  input: usd,
  cache_read: usd,
  cache_write: usd,
  cache_write_1h: usd,
  output: usd,
};
const threshold = 1_000;
const rates = fc.record(someRates, { requiredKeys: [] });
const long = fc.record(
  { over_tokens: fc.constant(threshold), ...someRates },
  { requiredKeys: ["over_tokens"] },
);
const tier = fc
  .tuple(rates, fc.option(long, { nil: undefined }))
  .map(([own, over]) => (over === undefined ? own : { ...own, long_prompt: over }));
const price = fc
  .tuple(
    usd,
    tier,
    fc.option(fc.dictionary(fc.constantFrom("priority", "flex", "provisioned"), tier), {
      nil: undefined,
    }),
  )
  .map(([input, own, tiers]) => ({ input, ...own, ...(tiers === undefined ? {} : { tiers }) }));

const tokens = fc.oneof(
  fc.constant(0),
  fc.integer({ min: 0, max: 50 }),
  fc.integer({ min: 0, max: 2 * threshold }),
  fc.integer({ min: 0, max: 30_000_000 }),
);
const used = fc
  .record({
    fresh: tokens,
    read: tokens,
    written: tokens,
    kept: fc.double({ min: 0, max: 1, noNaN: true }),
    output: tokens,
    /** Puts the input at the threshold of long prompts, or one beside it. */
    edge: fc.constantFrom(undefined, undefined, threshold - 1, threshold, threshold + 1),
  })
  .map(({ fresh, read, written, kept, output, edge }) => {
    const cached = edge === undefined ? { read, written } : { read: edge % 300, written: edge % 7 };
    const input = edge ?? fresh + cached.read + cached.written;
    return { input, ...cached, kept_1h: Math.floor(cached.written * kept), output };
  });
const tierName = fc.constantFrom(
  null,
  null,
  "default",
  "standard",
  "priority",
  "flex",
  "provisioned",
  "batch",
);

testNeeding("python3")(
  "an oracle in another language's decimals prices every call the same",
  async () => {
    const samples = fc.sample(fc.record({ price, used, tier: tierName }), {
      numRuns: calls,
      seed: 34,
    });
    const costs = samples.map(({ price: written, used: of, tier: served }) => {
      const read = targetPriceSchema.parse(written);
      if (read === undefined) throw new Error("there is no price");
      const cost = costOf(
        {
          inputTokens: of.input,
          cachedInputTokens: of.read,
          cacheWriteTokens: of.written,
          cacheWrite1hTokens: of.kept_1h,
          outputTokens: of.output,
        },
        read,
        served ?? undefined,
      );
      return cost === undefined ? "none" : String(cost);
    });
    const input = samples.map((sample) => JSON.stringify(sample)).join("\n");
    const oracle = Bun.spawn(["python3", `${import.meta.dir}/price-oracle.py`], {
      stdin: new Blob([input]),
      stdout: "pipe",
    });
    const expected = (await new Response(oracle.stdout).text()).trimEnd().split("\n");
    expect(await oracle.exited).toBe(0);
    expect(expected).toHaveLength(calls);
    const different = samples.flatMap((sample, index) => {
      const [is, not] = [costs[index], expected[index]];
      // What no call costs is no safe integer of pico-USD.
      const isNear = Number(not) > exactNano && Math.abs(Number(is) - Number(not)) <= 1;
      return is === not || isNear ? [] : [{ ...sample, is, not }];
    });
    expect(different.slice(0, 3)).toEqual([]);
    // Both priced and unpriced calls were compared, most of them exactly.
    const priced = expected.filter((text) => text !== "none");
    expect(priced.length).toBeGreaterThan(calls / 20);
    expect(priced.length).toBeLessThan(calls * 0.95);
    const exact = priced.filter((text) => Number(text) <= exactNano);
    expect(exact.length).toBeGreaterThan(priced.length / 2);
  },
  120_000,
);
