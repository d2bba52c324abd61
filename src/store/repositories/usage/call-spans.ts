import { sql } from "kysely";
import { needsCalls } from "../../../domain/usage/usage.ts";
import type { CallFilter } from "../../usage-reports.ts";
import type { Queries } from "../tables.ts";
import { all, callConditions } from "./usage-filter.ts";

/** A time range; `until` is excluded. */
export interface TimeSpan {
  readonly since: number;
  readonly until: number;
}

/** Most calls that one statement reads, or searches for those that match. */
const callsAtOnce = 10_000;

/**
 * The last part of a range that one statement may read: with at most so many calls, apart from ties
 * of one millisecond. If the filter asks for calls that may be billed twice, only those count; if it
 * asks for an end user or a tag, only those of its key or account.
 */
export async function latestCalls(
  queries: Queries,
  filter: CallFilter,
  { since, until }: TimeSpan = filter,
): Promise<TimeSpan> {
  const { mayBeBilledTwice, keyId } = filter;
  const accountId = keyId === undefined ? filter.accountId : undefined;
  const owner = needsCalls(filter, []) && mayBeBilledTwice !== true ? { keyId, accountId } : {};
  const conditions = [
    ...callConditions({ since, until, mayBeBilledTwice, ...owner }),
    sql`started_at >= ${since} and started_at < ${until}`,
  ];
  const { rows } = await sql<{ startedAt: number }>`
    select started_at from usage where ${all(conditions)}
    order by started_at desc limit 1 offset ${callsAtOnce}`.execute(queries);
  return { since: rows[0]?.startedAt ?? since, until };
}
