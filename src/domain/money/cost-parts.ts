import type { UsageRecord } from "../usage/usage.ts";
import { costOf, provisionedTier, ratesOf } from "./cost.ts";
import type { Price } from "./price.ts";

export const tokenClasses = [
  "input",
  "cache_read",
  "cache_write",
  "cache_write_1h",
  "output",
] as const;

/** How tokens are priced. `input`: neither read from a cache nor written to one. */
export type TokenClass = (typeof tokenClasses)[number];

/** What the tokens of one class cost. */
export interface CostPart {
  readonly tokenClass: TokenClass;
  readonly tokens: number;
  /** Micro-USD per 1M tokens: times the tokens, it is pico-USD. */
  readonly rate: number;
}

/**
 * The requests of a call are rounded one by one, and its row has only their sums: so far may its cost
 * be from that of the sums.
 */
const mostRoundingNano = 1_000;

/** A stored cost and the tier of the price that it is from. */
export interface ExplainedCost {
  readonly tier: string | undefined;
  /** By the price, without the rounding of single requests. */
  readonly costNano: number;
}

/**
 * Whether the tokens of a stored call have its cost by the price of its one target. A call that used
 * several targets, or was cut by a crash, is not explained: undefined.
 */
export function explainCost(
  call: UsageRecord,
  price: Price | undefined,
): ExplainedCost | undefined {
  const { costNano: known, serviceTier, capacityClass } = call;
  if (known === undefined || price === undefined) return undefined;
  // Outside its own pool, a call within a guarantee has the price of any other.
  const tiers = capacityClass === "provisioned" ? [provisionedTier, serviceTier] : [serviceTier];
  for (const tier of tiers) {
    const costNano = costOf(call, price, tier);
    if (costNano === undefined || Math.abs(costNano - known) > mostRoundingNano) continue;
    return { tier, costNano };
  }
  return undefined;
}

/** The parts of a cost that is explained; classes without tokens are left out. */
export function partsOf(
  call: UsageRecord,
  price: Price,
  { tier }: Pick<ExplainedCost, "tier">,
): readonly CostPart[] {
  const { inputTokens, cachedInputTokens: read, cacheWriteTokens: written = 0 } = call;
  const rates = ratesOf(inputTokens, price, tier) ?? {};
  const written1h = Math.min(written, call.cacheWrite1hTokens ?? 0);
  const tokens = {
    input: [Math.max(0, inputTokens - read - written), rates.input],
    cache_read: [read, rates.cacheRead],
    cache_write: [written - written1h, rates.cacheWrite],
    cache_write_1h: [written1h, rates.cacheWrite1h],
    output: [call.outputTokens, rates.output],
  } as const;
  return tokenClasses.flatMap((tokenClass) => {
    const [count, rate = 0] = tokens[tokenClass];
    return count === 0 ? [] : [{ tokenClass, tokens: count, rate }];
  });
}
