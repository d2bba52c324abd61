import type {
  GroupDimension,
  UsageRank,
  UsageStep,
  CallOutcome,
  CallDialect,
  CapacityClass,
  UsageRecord,
} from "../domain/usage/usage.ts";
import type { Page, PageRequest } from "./control-store.ts";

/** Reads the ledger. Every backend passes `test/contracts/usage-reports-contract.ts`. */
export interface UsageReports {
  /** Sums over a time range by dimensions. At most `limit` groups. */
  totals(query: TotalsQuery): Promise<readonly UsageTotal[]>;
  /** The same for each step of time, without steps that have no calls. */
  series(query: SeriesQuery): Promise<readonly UsagePoint[]>;
  /** Single calls, newest first. */
  calls(filter: CallFilter, page: PageRequest): Promise<Page<UsageRecord>>;
  call(id: string): Promise<UsageRecord | undefined>;
}

/**
 * Matches every field. Totals and series widen the times to whole minutes, or to whole hours or
 * days where calls or hours are no longer kept.
 */
export interface UsageFilter {
  /** Milliseconds since the epoch, included. */
  readonly since: number;
  /** Excluded. */
  readonly until: number;
  readonly environment?: string | undefined;
  readonly accountId?: string | undefined;
  readonly applicationId?: string | undefined;
  readonly keyId?: string | undefined;
  readonly model?: string | undefined;
  readonly dialect?: CallDialect | undefined;
  readonly target?: string | undefined;
  readonly outcome?: CallOutcome | undefined;
  readonly status?: number | undefined;
  readonly code?: string | undefined;
  readonly capacityClass?: CapacityClass | undefined;
  /** Any of these, as they are stored. Only calls have them, not their sums. */
  readonly endUsers?: readonly string[] | undefined;
  /** A key and its value. Only calls have it, not their sums. */
  readonly tag?: readonly [key: string, value: string] | undefined;
}

export interface CallFilter extends UsageFilter {
  /** Only calls that a provider may bill twice. */
  readonly mayBeBilledTwice?: true | undefined;
}

export interface TotalsQuery {
  readonly filter: UsageFilter;
  /** With those that only calls have, what is left of calls is summed up. */
  readonly by: readonly GroupDimension[];
  readonly limit: number;
  /** Whether there is a sum of the groups beyond `limit`, too; in a series for each step. */
  readonly hasRest?: boolean | undefined;
}

export interface SeriesQuery extends TotalsQuery {
  readonly step: UsageStep;
  /** The groups within `limit` have the most of it. Default: calls. */
  readonly rank?: UsageRank | undefined;
}

export interface UsageTotal {
  /**
   * Ids of the group, by dimension in the order of `by`; a null target means that none was tried. Empty: the sum
   * of all groups beyond the limit.
   */
  readonly group: Readonly<Record<string, string | number | null>>;
  readonly calls: number;
  /** Calls that did not complete: failed, abandoned or interrupted. */
  readonly failedCalls: number;
  readonly abandonedCalls: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cachedInputTokens: number;
  readonly cacheWriteTokens: number;
  /** Tokens of calls whose upstream gave no count. */
  readonly estimatedTokens: number;
  /** Nano-USD of the calls that have a cost; undefined: there are only others. */
  readonly costNano: bigint | undefined;
  /** Calls without a cost, because something that they used has no price. */
  readonly unpricedCalls: number;
  /** Milliseconds of completed calls; undefined without one. */
  readonly duration: Percentiles | undefined;
  readonly firstEvent: Percentiles | undefined;
}

/** Within 5 % of the exact value. */
export interface Percentiles {
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
}

export interface UsagePoint extends UsageTotal {
  /** Milliseconds since the epoch, when the step begins (UTC). */
  readonly at: number;
}
