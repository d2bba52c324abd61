import type { UsageRecord } from "../usage/usage.ts";
import { costOf, ratesOf } from "./cost.ts";
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

/**
 * What the tokens of a stored call cost by the price of its one target, without the rounding of single
 * requests. Undefined: its cost is another, as of a call that used several targets, or was cut by a
 * crash.
 */
export function explainCost(call: UsageRecord, price: Price | undefined): number | undefined {
  const { costNano: known } = call;
  const costNano = price && costOf(call, price, call.serviceTier);
  if (known === undefined || costNano === undefined) return undefined;
  return Math.abs(costNano - known) > mostRoundingNano ? undefined : costNano;
}

/** The parts of a cost that is explained; classes without tokens are left out. */
export function partsOf(call: UsageRecord, price: Price): readonly CostPart[] {
  const { inputTokens, cachedInputTokens: read, cacheWriteTokens: written = 0 } = call;
  const rates = ratesOf(inputTokens, price, call.serviceTier) ?? {};
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
