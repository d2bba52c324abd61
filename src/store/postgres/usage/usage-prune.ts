import { sql } from "kysely";
import { type UsageStep, usageSteps } from "../../../domain/usage/usage-report.ts";
import type { Queries } from "../../repositories/tables.ts";
import {
  details,
  horizonOf,
  stepDetails,
  stepTables,
} from "../../repositories/usage/usage-steps.ts";
import type { UsageRetention } from "../../store.ts";
import { foldMinutes } from "./usage-fold.ts";
import { dropPartition, listPartitions, type UsagePartition } from "./usage-partitions.ts";

/**
 * Removes the oldest day of calls if it is past its retention; returns about how many. Alone in its
 * transaction, because readers of calls wait until it ends.
 */
export async function pruneDay(queries: Queries, { calls }: UsageRetention): Promise<number> {
  const oldest = await oldestDay(queries);
  if (calls === undefined || oldest === undefined || oldest.until > calls) return 0;
  await moveHorizon(queries, "call", oldest.until);
  return dropPartition(queries, oldest);
}

/**
 * Removes at most `limit` rows past their retention; returns how many. Whole days of calls are left
 * to `pruneDay`.
 */
export async function pruneRows(
  queries: Queries,
  retention: UsageRetention,
  limit: number,
): Promise<number> {
  const { calls } = retention;
  const oldest = await oldestDay(queries);
  const isDayLeft = calls !== undefined && oldest !== undefined && oldest.until <= calls;
  let removed = calls === undefined || isDayLeft ? 0 : await pruneCalls(queries, calls, limit);
  for (const step of usageSteps) {
    const at = horizonOf(step, retention);
    if (at === undefined || removed >= limit) continue;
    // Reports stop reading that range first, so they never show a part of it.
    await moveHorizon(queries, step, at);
    if (step === "minute") await foldMinutes(queries, at);
    removed += await pruneSums(queries, { step, at }, limit - removed);
  }
  return removed;
}

async function oldestDay(queries: Queries): Promise<UsagePartition | undefined> {
  const [oldest] = await listPartitions(queries);
  return oldest;
}

async function pruneCalls(queries: Queries, before: number, limit: number): Promise<number> {
  const old = sql`select id, started_at from usage where started_at < ${before}
    order by started_at limit ${limit}`;
  const { rows } = await sql<{ startedAt: number }>`
    delete from usage where (id, started_at) in (${old}) returning started_at`.execute(queries);
  // From now on, a missing call of that time may already have been counted.
  const newest = rows.reduce((latest, { startedAt }) => Math.max(latest, startedAt), -1);
  await moveHorizon(queries, "call", newest + 1);
  return rows.length;
}

/** Never moves backwards. */
async function moveHorizon(queries: Queries, step: UsageStep | "call", at: number): Promise<void> {
  const update = queries.updateTable("usageHorizons").set({ at });
  await update.where("step", "=", step).where("at", "<", at).execute();
}

async function pruneSums(
  queries: Queries,
  { step, at }: { readonly step: UsageStep; readonly at: number },
  limit: number,
): Promise<number> {
  const table = sql.table(stepTables[step]);
  let removed = 0;
  for (const detail of stepDetails[step]) {
    if (removed >= limit) break;
    const { numAffectedRows } = await sql`
      delete from ${table} where (detail, at, group_id) in (
        select detail, at, group_id from ${table}
        where detail = ${details[detail]} and at < ${at} order by at limit ${limit - removed})`.execute(
      queries,
    );
    removed += Number(numAffectedRows);
  }
  return removed;
}
