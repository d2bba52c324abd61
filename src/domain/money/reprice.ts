import type { UsageRecord } from "../usage/usage.ts";
import { costOf } from "./cost.ts";
import { explainCost } from "./cost-parts.ts";
import type { Price } from "./price.ts";

/** What a call would cost by another price; a text says why it stays as it is. */
export type Repriced = number | "not_priced" | "not_explained";

/** The cost of a stored call by `price`, given the price that it had. */
export function repriced(
  call: UsageRecord,
  before: Price | undefined,
  price: Price | undefined,
): Repriced {
  const { costNano: known, serviceTier: tier, routing, target } = call;
  if (target === undefined) return "not_explained";
  if (known === undefined) {
    // Its row has the tokens of all attempts.
    if (routing?.attempts.some(({ mayBeBilled }) => mayBeBilled) === true) return "not_explained";
    if (price === undefined) return "not_priced";
    return costOf(call, price, tier) ?? "not_priced";
  }
  const explained = explainCost(call, before);
  if (explained === undefined) return "not_explained";
  const cost = price && costOf(call, price, tier);
  return cost === undefined ? "not_priced" : Math.max(0, cost + known - explained);
}
