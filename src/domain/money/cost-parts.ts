import type { UsageRecord } from "../usage/usage.ts";
import { costOf, provisionedTier, ratesOf } from "./cost.ts";
import { type Price, tokenClasses } from "./price.ts";

/** What a call is billed for. */
export const costItems = [...tokenClasses, "image"] as const;
export type CostItem = (typeof costItems)[number];

/** What the tokens of one class cost, or images. */
export interface CostPart {
  readonly item: CostItem;
  readonly count: number;
  /** Micro-USD per 1M: times the count, it is pico-USD. */
  readonly rate: number;
}

/**
 * The requests of a call are rounded one by one, and its row has only their sums: so far may its cost
 * be from that of the sums.
 */
const mostRoundingNano = 1_000;

/**
 * What a stored call costs by the price of its one target, without the rounding of single requests.
 * Undefined: its cost is another, as of a call that used several targets, or was cut by a crash.
 */
export function explainCost(call: UsageRecord, price: Price | undefined): number | undefined {
  const { costNano: known } = call;
  const costNano = price && costOf(call, price, call.serviceTier);
  if (known === undefined || costNano === undefined) return undefined;
  return Math.abs(costNano - known) > mostRoundingNano ? undefined : costNano;
}

/** The parts of a cost that is explained; what was not used is left out. */
export function partsOf(call: UsageRecord, price: Price): readonly CostPart[] {
  const { inputTokens, cachedInputTokens: read, cacheWriteTokens: written = 0 } = call;
  const written1h = Math.min(written, call.cacheWrite1hTokens ?? 0);
  const counts: Readonly<Record<CostItem, number>> = {
    input: Math.max(0, inputTokens - read - written),
    cache_read: read,
    cache_write: written - written1h,
    cache_write_1h: written1h,
    output: call.outputTokens,
    image: call.images ?? 0,
  };
  const perImage = call.serviceTier === provisionedTier ? 0 : (price.image ?? 0);
  const rates = { ...ratesOf(inputTokens, price, call.serviceTier), image: perImage * 1_000_000 };
  return costItems
    .map((item) => ({ item, count: counts[item], rate: rates[item] ?? 0 }))
    .filter(({ item, count, rate }) => count > 0 && (item !== "image" || rate > 0));
}
