import type { Target } from "../../domain/model.ts";
import { type BilledTokens, costOf, provisionedTier } from "../../domain/money/cost.ts";
import type { PriceBook } from "../../domain/money/price.ts";
import type { CapacityClass, TokenUsage } from "../../domain/usage/usage.ts";
import { classAt } from "../../admission/capacity/place.ts";

/** What decides the prices of a call. */
export interface CostTerms {
  readonly prices: PriceBook;
  /** Milliseconds since the epoch. */
  readonly arrivedAt: number;
  readonly capacityClass: CapacityClass;
  /** The pool of the key's units. */
  readonly provisionedPool: string | undefined;
  /** Images that the call had vectors made of; undefined: none. */
  readonly images?: number | undefined;
  /** The tier that the caller asked for: that of a request whose answer was not read to its end. */
  readonly askedTier: string | undefined;
}

export interface CallCost {
  /** Nano-USD; undefined: something that was used has no price. */
  readonly costNano: number | undefined;
  /** Undefined: no price was needed, or there was none. */
  readonly priceVersion: number | undefined;
  /** That all requests were priced by; undefined: the standard one, or several. */
  readonly tier?: string | undefined;
}

const free: CallCost = { costNano: 0, priceVersion: undefined };
const notPriced: CallCost = { costNano: undefined, priceVersion: undefined };

/**
 * The cost of all requests of a call, each at the price of its target; `serving` is the target of
 * those that name none. Each is rounded by itself, as a provider bills it.
 */
export function costOfCall(
  usage: TokenUsage,
  serving: Target | undefined,
  terms: CostTerms,
): CallCost {
  const ofTokens = costOfTokens(usage, serving, terms);
  const { images } = terms;
  if (images === undefined || ofTokens.costNano === undefined) return ofTokens;
  const ofImages = costOfRequest({ ...nothing, images }, serving, terms);
  if (!ofImages.costNano) return ofTokens;
  const costNano = ofTokens.costNano + ofImages.costNano;
  return { ...ofTokens, costNano, priceVersion: ofImages.priceVersion };
}

const nothing = { inputTokens: 0, cachedInputTokens: 0, outputTokens: 0 };

function costOfTokens(usage: TokenUsage, serving: Target | undefined, terms: CostTerms): CallCost {
  const { requests } = usage;
  if (requests === undefined) return costOfRequest(usage, usage.target ?? serving, terms);
  let costNano = 0;
  let priceVersion: number | undefined;
  const tiers = new Set<string | undefined>();
  for (const request of requests) {
    const cost = costOfRequest(request, request.target ?? serving, terms);
    if (cost.costNano === undefined) return notPriced;
    costNano += cost.costNano;
    priceVersion = cost.priceVersion ?? priceVersion;
    if (cost !== free) tiers.add(cost.tier);
  }
  const [tier] = tiers;
  return { costNano, priceVersion, tier: tiers.size === 1 ? tier : undefined };
}

/** The most that it costs at one of the targets that have a price; undefined: none has. */
export function dearestCost(
  usage: TokenUsage,
  targets: readonly Target[],
  terms: CostTerms,
): CallCost {
  let dearest = notPriced;
  for (const target of targets) {
    const cost = costOfRequest(usage, target, terms);
    if ((cost.costNano ?? -1) > (dearest.costNano ?? -1)) dearest = cost;
  }
  return dearest;
}

function costOfRequest(
  usage: BilledTokens & Pick<TokenUsage, "serviceTier">,
  target: Target | undefined,
  terms: CostTerms,
): CallCost {
  if (usage.inputTokens + usage.outputTokens + (usage.images ?? 0) === 0) return free;
  if (target === undefined) return notPriced;
  const { prices, arrivedAt, askedTier } = terms;
  const isProvisioned = isOfUnits(target, terms);
  const found = prices.find(target.id, arrivedAt);
  if (found === undefined) return isProvisioned ? { ...free, tier: provisionedTier } : notPriced;
  const { price, version: priceVersion } = found;
  const isAsked = askedTier !== undefined && price.tiers?.[askedTier] !== undefined;
  const ofAnswer = usage.serviceTier ?? (isAsked ? askedTier : undefined);
  const tier = isProvisioned ? provisionedTier : ofAnswer;
  const costNano = costOf(usage, price, tier);
  return { costNano, priceVersion: costNano === undefined ? undefined : priceVersion, tier };
}

function isOfUnits({ pool }: Target, terms: CostTerms): boolean {
  return terms.capacityClass === "provisioned" && classAt(terms, pool) === "provisioned";
}
