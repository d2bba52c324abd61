/** Micro-USD per 1,000,000 tokens, integers. Absent: no price, which is not the same as 0. */
export interface Rates {
  /** Input that was neither read from a cache nor written to one. */
  readonly input?: number | undefined;
  readonly cacheRead?: number | undefined;
  /** Input written to a cache for some minutes. */
  readonly cacheWrite?: number | undefined;
  /** Input written to a cache for an hour. */
  readonly cacheWrite1h?: number | undefined;
  readonly output?: number | undefined;
}

/** The rates of one service tier. */
export interface TierRates extends Rates {
  /** Rates of the whole call when its input, cached or not, is more than so many tokens. */
  readonly over?: { readonly tokens: number; readonly rates: Rates } | undefined;
}

/** What a provider asks for one model in one scope. */
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

/** One published version of all prices: never changed. */
export interface PriceTable {
  /** From 1, in the order of publication. */
  readonly version: number;
  /** Calls that arrive from then on have its prices; milliseconds since the epoch. */
  readonly validFrom: number;
  /** By target id. A target that is absent has no price. */
  readonly targets: Readonly<Record<string, TargetPrice>>;
}

/** The price of a target in one version. */
export interface VersionedPrice {
  readonly price: Price;
  readonly version: number;
}

/** The prices that apply to calls. */
export interface PriceBook {
  /** No table is known: the first one is published even if nothing has a price. */
  readonly isEmpty: boolean;
  /** The price of a target for a call that arrived then, as in `tableAt`; undefined: none. */
  find(targetId: string, arrivedAt: number): VersionedPrice | undefined;
}

interface BookPage {
  readonly version: number;
  readonly validFrom: number;
  readonly prices: ReadonlyMap<string, VersionedPrice>;
}

/** The price book of a process: the tables that its control thread has sent. */
export class PublishedPrices implements PriceBook {
  /** Newest first. */
  #pages: readonly BookPage[] = [];

  get isEmpty(): boolean {
    return this.#pages.length === 0;
  }

  /**
   * Replaces all tables. One that has begun already begins here now: a call costs what the price says
   * by which it was admitted.
   */
  publish(tables: readonly PriceTable[], now: number): void {
    const known = new Map(this.#pages.map(({ version, validFrom }) => [version, validFrom]));
    this.#pages = inOrder(tables).map(({ version, validFrom, targets }) => ({
      version,
      validFrom: known.get(version) ?? (this.isEmpty ? validFrom : Math.max(validFrom, now + 1)),
      prices: new Map(
        Object.entries(targets).map(([id, { price }]) => [id, { price, version }] as const),
      ),
    }));
  }

  find(targetId: string, arrivedAt: number): VersionedPrice | undefined {
    for (const { validFrom, prices } of this.#pages) {
      if (validFrom <= arrivedAt) return prices.get(targetId);
    }
    return this.#pages.at(-1)?.prices.get(targetId);
  }
}

/**
 * The table whose prices apply at a time; undefined: there is none. Before the first one, as after a
 * step of the clock, that one applies.
 */
export function tableAt(tables: readonly PriceTable[], at: number): PriceTable | undefined {
  const ordered = inOrder(tables);
  return ordered.find(({ validFrom }) => validFrom <= at) ?? ordered.at(-1);
}

/** Newest first: of tables with the same beginning, the one that was published last. */
function inOrder(tables: readonly PriceTable[]): readonly PriceTable[] {
  return tables.toSorted(
    (one, other) => other.validFrom - one.validFrom || other.version - one.version,
  );
}
