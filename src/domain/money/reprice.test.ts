import { expect, test } from "bun:test";
import { recordOf } from "../../../test/contracts/usage-fixtures.ts";
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
