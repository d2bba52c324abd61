import { expect, test } from "bun:test";
import { recordOf } from "../../../test/contracts/usage-fixtures.ts";
import { partsOf } from "./cost-parts.ts";
import { repriced } from "./reprice.ts";

const before = { input: 30_000, tiers: { priority: { input: 60_000 } } };
const after = { input: 50_000, tiers: { priority: { input: 100_000 } } };

/** So cheap that the rounding of its requests would explain the cost of any tier. */
function cheap(costNano: number, serviceTier?: string) {
  const tokens = { inputTokens: 10, outputTokens: 0, cachedInputTokens: 0 };
  return recordOf("one", { ...tokens, capacityClass: "provisioned", costNano, serviceTier });
}

test("a call within a guarantee has the price of the tier on its row", () => {
  expect(repriced(cheap(300), before, after)).toBe(500);
  expect(repriced(cheap(600, "priority"), before, after)).toBe(1_000);
  expect(repriced(cheap(0, "provisioned"), before, after)).toBe(0);
});

test("images of a call are a part of its cost, which is explained and priced again", () => {
  const images = { ...before, image: 60 };
  const call = recordOf("vectors", {
    inputTokens: 10,
    outputTokens: 0,
    cachedInputTokens: 0,
    images: 2,
    costNano: 300 + 2 * 60_000,
  });
  expect(partsOf(call, images)).toEqual([
    { item: "input", count: 10, rate: 30_000 },
    { item: "image", count: 2, rate: 60_000_000 },
  ]);
  expect(repriced(call, images, { ...after, image: 100 })).toBe(500 + 2 * 100_000);
  expect(repriced(call, images, after)).toBe(500);
  // A table without a price of images does not explain it.
  expect(repriced(call, before, after)).toBe("not_explained");
});
