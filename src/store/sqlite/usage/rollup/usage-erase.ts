import type { Database } from "bun:sqlite";
import type { UsageStep } from "../../../../domain/usage/usage-report.ts";
import { foldAllMinutes } from "./usage-fold.ts";
import type { ColumnValue } from "../../../repositories/usage/usage-row.ts";
import {
  type Detail,
  details,
  erasureOrder,
  stepLengthsMs,
  stepTables,
} from "../../../repositories/usage/usage-steps.ts";

/**
 * Removes at most `limit` rows of an account and returns how many: its calls, then its sums day by
 * day, then its groups. The sums of a day by key go last, because they show which days are left.
 */
export function eraseUsage(database: Database, accountId: string, limit: number): number {
  const calls = database.run(
    "DELETE FROM usage WHERE rowid IN (SELECT rowid FROM usage WHERE account_id = ? LIMIT ?)",
    [accountId, limit],
  ).changes;
  if (calls > 0) return calls;
  // Only minutes that are folded show up in the days.
  foldAllMinutes(database);
  // One day at a time, because its other accounts are scanned too.
  const day = findDay(database, accountId);
  if (day === undefined) return eraseGroups(database, accountId, limit);
  return eraseDay(database, { accountId, day }, limit);
}

function findDay(database: Database, accountId: string): number | undefined {
  const row = database
    .query<{ at: number }, [number, string, number]>(
      `SELECT at FROM usage_days WHERE detail = ? AND group_id IN (
         SELECT id FROM usage_groups WHERE account_id = ? AND detail = ?)
       ORDER BY at LIMIT 1`,
    )
    .get(details.key, accountId, details.key);
  return row?.at;
}

interface AccountDay {
  readonly accountId: string;
  readonly day: number;
}

function eraseDay(database: Database, where: AccountDay, limit: number): number {
  let removed = 0;
  for (const [step, detail] of erasureOrder) {
    if (removed >= limit) break;
    removed += eraseSums(database, { ...where, step, detail }, limit - removed);
  }
  return removed;
}

function eraseSums(
  database: Database,
  where: AccountDay & { readonly step: UsageStep; readonly detail: Detail },
  limit: number,
): number {
  const { accountId, day } = where;
  const table = stepTables[where.step];
  const detail = details[where.detail];
  const erase = database.query<unknown, ColumnValue[]>(
    `DELETE FROM ${table} WHERE (detail, at, group_id) IN (
       SELECT detail, at, group_id FROM ${table} WHERE detail = ? AND at >= ? AND at < ?
         AND group_id IN (SELECT id FROM usage_groups WHERE account_id = ? AND detail = ?)
       LIMIT ?)`,
  );
  return erase.run(detail, day, day + stepLengthsMs.day, accountId, detail, limit).changes;
}

function eraseGroups(database: Database, accountId: string, limit: number): number {
  return database.run(
    `DELETE FROM usage_groups WHERE id IN (
       SELECT id FROM usage_groups WHERE account_id = ? LIMIT ?)`,
    [accountId, limit],
  ).changes;
}
