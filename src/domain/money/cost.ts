import type { Price, Rates } from "./price.ts";

/** What a call used, as it is billed. */
export interface BilledTokens {
  /** All input, cached and written parts included. */
  readonly inputTokens: number;
  readonly cachedInputTokens: number;
  /** All that was written to a cache. */
  readonly cacheWriteTokens?: number | undefined;
  /** The part of it that is kept for an hour. */
  readonly cacheWrite1hTokens?: number | undefined;
  readonly outputTokens: number;
  readonly images?: number | undefined;
}

/** Micro-USD per 1M tokens times tokens is pico-USD. */
const picoPerNano = 1_000;
/** Micro-USD in pico-USD. */
const picoPerMicro = 1_000_000;

/**
 * The cost in nano-USD, of exact integers, rounded once, half up. Undefined: something that was used
 * has no price in this tier.
 */
export function costOf(
  used: BilledTokens,
  price: Price,
  tier: string | undefined,
): number | undefined {
  const rates = ratesOf(used.inputTokens, price, tier);
  if (rates === undefined) return undefined;
  const { cachedInputTokens: read, cacheWriteTokens: written = 0, images = 0 } = used;
  const written1h = Math.min(written, used.cacheWrite1hTokens ?? 0);
  const fresh = Math.max(0, used.inputTokens - read - written);
  let pico = 0n;
  let small = 0;
  for (const [amount, rate] of [
    [fresh, rates.input],
    [read, rates.cacheRead],
    [written - written1h, rates.cacheWrite],
    [written1h, rates.cacheWrite1h],
    [used.outputTokens, rates.output],
    [images, rates.image === undefined ? undefined : rates.image * picoPerMicro],
  ] as const) {
    if (amount === 0) continue;
    if (rate === undefined) return undefined;
    const part = amount * rate;
    if (Number.isSafeInteger(small + part)) small += part;
    else pico += BigInt(amount) * BigInt(rate);
  }
  if (pico === 0n) return Math.floor((small + picoPerNano / 2) / picoPerNano);
  return Number((pico + BigInt(small) + 500n) / 1_000n);
}

/** Undefined: the tier has no prices. */
export function ratesOf(
  inputTokens: number,
  price: Price,
  tier: string | undefined,
): Rates | undefined {
  if (tier !== undefined && tier !== "default" && tier !== "standard") return price.tiers?.[tier];
  return price.over !== undefined && inputTokens > price.over.tokens ? price.over.rates : price;
}
