import { type Price, type Rates, tokenClasses } from "./price.ts";

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
  /** That vectors were made of; some models have a price of an image. */
  readonly images?: number | undefined;
}

/** Micro-USD per 1M tokens times tokens is pico-USD. */
const picoPerNano = 1_000;
const picoPerMicro = 1_000_000;
/** Tier of calls within a provisioned throughput, which is paid by its units. */
export const provisionedTier = "provisioned";

/**
 * The cost in nano-USD, of exact integers, rounded once, half up. Above 9,007 USD, where pico-USD are
 * no safe integers, it may be a nano-USD off. Undefined: something that was used has no price in this
 * tier.
 */
export function costOf(
  used: BilledTokens,
  price: Price,
  tier: string | undefined,
): number | undefined {
  const rates = ratesOf(used.inputTokens, price, tier);
  if (rates === undefined) return undefined;
  const { cachedInputTokens: read, cacheWriteTokens: written = 0 } = used;
  const written1h = Math.min(written, used.cacheWrite1hTokens ?? 0);
  const fresh = Math.max(0, used.inputTokens - read - written);
  const pico =
    partOf(fresh, rates.input) +
    partOf(read, rates.cache_read) +
    partOf(written - written1h, rates.cache_write) +
    partOf(written1h, rates.cache_write_1h) +
    partOf(used.outputTokens, rates.output) +
    imagesOf(used, price, tier) * picoPerMicro;
  if (Number.isNaN(pico)) return undefined;
  return Math.floor((pico + picoPerNano / 2) / picoPerNano);
}

/** Not a number: it was used and has no price. */
function partOf(amount: number, rate: number | undefined): number {
  return amount === 0 ? 0 : amount * (rate ?? Number.NaN);
}

/** In micro-USD. */
function imagesOf({ images = 0 }: BilledTokens, { image = 0 }: Price, tier?: string): number {
  return tier === provisionedTier ? 0 : images * image;
}

/** Undefined: the tier has no prices. */
export function ratesOf(
  inputTokens: number,
  price: Price,
  tier: string | undefined,
): Rates | undefined {
  const isStandard = tier === undefined || tier === "default" || tier === "standard";
  const ofTier = isStandard ? price : price.tiers?.[tier];
  if (ofTier === undefined) return tier === provisionedTier ? free : undefined;
  const { long_prompt: long } = ofTier;
  return long !== undefined && inputTokens > long.over_tokens ? long : ofTier;
}

const free: Rates = Object.fromEntries(tokenClasses.map((name) => [name, 0]));
