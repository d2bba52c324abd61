import type { PriceTable } from "../domain/money/price.ts";

/** The costs of stored calls. All throw `StorageUnavailable`. */
export interface CostStore {
  /** Prices the next calls of a run again, in one transaction. */
  reprice(request: RepriceRequest): Promise<RepricedBatch>;
  /** Notes a run that has ended, for the event of it. */
  noteRun(run: RepriceRun): Promise<void>;
  /** The time before which single calls were removed. */
  callsSince(): Promise<number>;
}

export interface RepriceRun {
  readonly run: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** JSON. */
  readonly summary: string;
}

/** A part of a run that prices calls again. Times are milliseconds since the epoch. */
export interface RepriceRequest {
  /** Id of the run. */
  readonly run: string;
  readonly at: number;
  readonly since: number;
  /** Excluded. */
  readonly until: number;
  /** The prices that are to count. */
  readonly table: PriceTable;
  /** Tables of first prices that are known, by version; filled as they are needed. */
  readonly tables: Map<number, PriceTable>;
  /** Whether what was spent in ended periods of budgets changes, too. */
  readonly closedPeriods: boolean;
  readonly isDryRun: boolean;
  /** Where the last part ended. */
  readonly after: RepriceEnd | undefined;
  /** Most calls. */
  readonly limit: number;
}

export interface RepriceEnd {
  readonly at: number;
  readonly id: string;
}

export interface RepricedBatch {
  /** Calls that were read. */
  readonly calls: number;
  readonly repriced: number;
  /** Calls that stay, as the prices have none for their target, tier or tokens. */
  readonly notPriced: number;
  /** Calls that stay, as the price of their one target does not explain their cost. */
  readonly notExplained: number;
  /** Costs of the repriced calls, before and after. */
  readonly oldNano: bigint;
  readonly newNano: bigint;
  /** Undefined: there are no more. */
  readonly end: RepriceEnd | undefined;
}
