import type { PromptCache } from "../model.ts";
import { ratesOf } from "./cost.ts";
import type { Price, Rates, TokenClass } from "./price.ts";

/** For how long a request asks to keep parts of its prompt; undefined: for none. */
export type CacheTime = "minutes" | "hour" | undefined;

/** What decides which classes of tokens a request may be billed for at a target. */
export interface BilledRequest {
  readonly cacheTime: CacheTime;
  /** That the caller asks for; the provider may serve the standard one instead. */
  readonly tier: string | undefined;
  readonly hasOutput: boolean;
}

/**
 * The classes of input that a request may be billed for. A provider that fills its cache as it likes
 * bills what it writes only of models for which it has a price of that.
 */
export function inputClasses(
  cache: PromptCache | undefined,
  { cacheTime }: Pick<BilledRequest, "cacheTime">,
  rates: Rates,
): readonly TokenClass[] {
  if (cache === undefined) return ["input"];
  const { filled, keepsAnHour } = cache;
  if (filled === "by_provider" && rates.cache_write === undefined) return ["input", "cache_read"];
  if (filled === "as_asked" && cacheTime === undefined) return ["input"];
  const isForAnHour = keepsAnHour && cacheTime === "hour";
  return isForAnHour ? withHour : ["input", "cache_read", "cache_write"];
}

const withHour: readonly TokenClass[] = ["input", "cache_read", "cache_write", "cache_write_1h"];

/**
 * What a price lacks for a request, such as `cache_read` or `tiers.flex`: without it, the cost of the
 * request may not be known.
 */
export function missingPrices(
  price: Price,
  cache: PromptCache | undefined,
  request: BilledRequest,
): readonly string[] {
  const missing = new Set<string>();
  const look = (tier: string | undefined, inputTokens: number): void => {
    const rates = ratesOf(inputTokens, price, tier);
    if (rates === undefined) {
      missing.add(`tiers.${tier}`);
      return;
    }
    for (const name of inputClasses(cache, request, rates)) {
      if (rates[name] === undefined) missing.add(name);
    }
    if (request.hasOutput && rates.output === undefined) missing.add("output");
  };
  for (const inputTokens of [0, Infinity]) {
    look(undefined, inputTokens);
    if (request.tier !== undefined) look(request.tier, inputTokens);
  }
  return [...missing];
}
