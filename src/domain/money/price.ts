import { isSameValue } from "../json-object.ts";

/** How tokens are priced. `input`: neither read from a cache nor written to one. */
export const tokenClasses = [
  "input",
  "cache_read",
  "cache_write",
  "cache_write_1h",
  "output",
] as const;
export type TokenClass = (typeof tokenClasses)[number];

/** Micro-USD per 1,000,000 tokens, integers. Absent: no price, which is not the same as 0. */
export type Rates = { readonly [Class in TokenClass]?: number | undefined };

/** The rates of one service tier. */
export interface TierRates extends Rates {
  /** Rates of the whole call when its input, cached or not, is more than so many tokens. */
  readonly long_prompt?: (Rates & { readonly over_tokens: number }) | undefined;
}

/** What a provider asks for one model in one scope, in the form of the section `prices`. */
export interface Price extends TierRates {
  /** Micro-USD for each image that a vector is made of. Undefined: images are tokens. */
  readonly image?: number | undefined;
  /** Rates of other service tiers, complete in themselves. */
  readonly tiers?: Readonly<Record<string, TierRates>> | undefined;
}

export const priceConfidences = ["configured", "high", "medium", "low"] as const;

/** How sure a price is: `configured` by the operator, or how well the sources of a default agree. */
export type PriceConfidence = (typeof priceConfidences)[number];

/** The price of a target, and who says so. */
export interface TargetPrice {
  readonly price: Price;
  /** Such as `targets[0] of the model`, or the list that a default is from. */
  readonly source: string;
  readonly confidence: PriceConfidence;
  /** `YYYY-MM-DD`; undefined: unknown. */
  readonly since?: string | undefined;
}

/** By target id; undefined: it has no price. */
export type PricesWanted = ReadonlyMap<string, TargetPrice | undefined>;

/** One published version of all prices: never changed. */
export interface PriceTable {
  /** From 1, in the order of publication. */
  readonly version: number;
  /** Calls that arrive from then on have its prices; milliseconds since the epoch. */
  readonly validFrom: number;
  /** By target id; null: it has no price. A target that is absent was not configured yet. */
  readonly targets: Readonly<Record<string, TargetPrice | null>>;
}

/**
 * The table to publish after the newest one; undefined: that says the same. Targets that are not
 * configured any more keep their prices, because other processes may still serve them.
 */
export function nextTable(
  newest: PriceTable | undefined,
  wanted: PricesWanted,
  now: number,
): PriceTable | undefined {
  const prices = [...wanted].map(([id, price]) => [id, price ?? null] as const);
  const targets = { ...newest?.targets, ...Object.fromEntries(prices) };
  // The first one is published without prices, too: calls then know that there are none.
  if (isSameValue(targets, newest?.targets)) return undefined;
  const { version, validFrom } = newest ?? { version: 0, validFrom: 0 };
  return { version: version + 1, validFrom: Math.max(now, validFrom), targets };
}

/** The price of a target in one version. */
export interface VersionedPrice {
  readonly price: Price;
  readonly version: number;
}

/** The prices that apply to calls. */
export interface PriceBook {
  /** The price of a target for a call that arrived then; undefined: none. */
  find(targetId: string, arrivedAt: number): VersionedPrice | undefined;
  /** Whether it is known what the target costs, or that it has no price. */
  isPublished(targetId: string, arrivedAt: number): boolean;
}

interface BookPage {
  readonly version: number;
  readonly validFrom: number;
  readonly prices: ReadonlyMap<string, VersionedPrice | undefined>;
}

/** The price book of a process: the tables that its control thread has sent. */
export class PublishedPrices implements PriceBook {
  /** Newest first. */
  #pages: readonly BookPage[] = [];

  /**
   * Replaces all tables. One that has begun already begins here now: a call costs what the price says
   * by which it was admitted.
   */
  publish(tables: readonly PriceTable[], now: number): void {
    const known = new Map(this.#pages.map(({ version, validFrom }) => [version, validFrom]));
    const newestFirst = tables.toSorted((one, other) => other.version - one.version);
    this.#pages = newestFirst.map(({ version, validFrom, targets }) => ({
      version,
      validFrom:
        known.get(version) ?? (known.size === 0 ? validFrom : Math.max(validFrom, now + 1)),
      prices: new Map(
        Object.entries(targets).map(([id, of]) => [
          id,
          of ? { price: of.price, version } : undefined,
        ]),
      ),
    }));
  }

  find(targetId: string, arrivedAt: number): VersionedPrice | undefined {
    return this.#pageAt(arrivedAt)?.prices.get(targetId);
  }

  isPublished(targetId: string, arrivedAt: number): boolean {
    return this.#pageAt(arrivedAt)?.prices.has(targetId) === true;
  }

  /** Before the first one, as after a step of the clock, that one applies. */
  #pageAt(at: number): BookPage | undefined {
    for (const page of this.#pages) if (page.validFrom <= at) return page;
    return this.#pages.at(-1);
  }
}
