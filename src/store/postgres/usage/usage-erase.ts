import { type RawBuilder, sql } from "kysely";
import type { UsageStep } from "../../../domain/usage/usage-report.ts";
import type { Queries } from "../../repositories/tables.ts";
import {
  type Detail,
  details,
  erasureOrder,
  stepLengthsMs,
  stepTables,
} from "../../repositories/usage/usage-steps.ts";
import { foldAllMinutes } from "./usage-fold.ts";

/**
 * Removes at most `limit` rows of an account and returns how many: its calls, then its sums day by
 * day, then its groups.
 */
export async function eraseUsage(
  queries: Queries,
  accountId: string,
  limit: number,
): Promise<number> {
  const calls = await remove(
    queries,
    sql`delete from usage where (id, started_at) in (
      select id, started_at from usage where account_id = ${accountId} limit ${limit})`,
  );
  if (calls > 0) return calls;
  // Only minutes that are folded show up in the days.
  await foldAllMinutes(queries);
  const day = await findDay(queries, accountId);
  if (day !== undefined) return eraseDay(queries, { accountId, day }, limit);
  return remove(
    queries,
    sql`delete from usage_groups where id in (
      select id from usage_groups where account_id = ${accountId} limit ${limit})`,
  );
}

async function findDay(queries: Queries, accountId: string): Promise<number | undefined> {
  const { rows } = await sql<{ at: number }>`
    select at from usage_days
    where detail = ${details.key} and group_id in (${groupsOf(accountId, "key")})
    order by at limit 1`.execute(queries);
  return rows[0]?.at;
}

interface AccountDay {
  readonly accountId: string;
  readonly day: number;
}

async function eraseDay(queries: Queries, where: AccountDay, limit: number): Promise<number> {
  let removed = 0;
  for (const [step, detail] of erasureOrder) {
    if (removed >= limit) break;
    removed += await eraseSums(queries, { ...where, step, detail }, limit - removed);
  }
  return removed;
}

function eraseSums(
  queries: Queries,
  where: AccountDay & { readonly step: UsageStep; readonly detail: Detail },
  limit: number,
): Promise<number> {
  const { accountId, day, step, detail } = where;
  const table = sql.table(stepTables[step]);
  return remove(
    queries,
    sql`delete from ${table} where (detail, at, group_id) in (
      select detail, at, group_id from ${table}
      where detail = ${details[detail]} and at >= ${day} and at < ${day + stepLengthsMs.day}
        and group_id in (${groupsOf(accountId, detail)})
      limit ${limit})`,
  );
}

function groupsOf(accountId: string, detail: Detail): RawBuilder<unknown> {
  return sql`select id from usage_groups
    where account_id = ${accountId} and detail = ${details[detail]}`;
}

async function remove(queries: Queries, deletion: RawBuilder<unknown>): Promise<number> {
  return Number((await deletion.execute(queries)).numAffectedRows);
}
