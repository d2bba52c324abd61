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
  /** Micro-USD for each image read. */
  readonly image?: number | undefined;
}

/** What a provider asks for one model in one scope. */
export interface Price extends Rates {
  /** Rates of the whole call when its input, cached or not, is more than so many tokens. */
  readonly over?: { readonly tokens: number; readonly rates: Rates } | undefined;
  /** Rates of other service tiers, complete in themselves. */
  readonly tiers?: Readonly<Record<string, Rates>> | undefined;
}

/** One published version of all prices: never changed. */
export interface PriceTable {
  /** From 1, in the order of publication. */
  readonly version: number;
  /** Calls that arrive from then on have its prices; milliseconds since the epoch. */
  readonly validFrom: number;
  /** By target id, for the targets of the configuration in use. A target that is absent has no price. */
  readonly targets: ReadonlyMap<string, Price>;
}

/** The prices that apply to calls, newest table first. */
export interface PriceBook {
  /** The price of a target for a call that arrived then; undefined: none. */
  find(
    targetId: string,
    arrivedAt: number,
  ): { readonly price: Price; readonly version: number } | undefined;
}
