import type { Database } from "bun:sqlite";
import type { UsageRetention } from "../../../store.ts";
import { type UsageStep, usageSteps } from "../../../../domain/usage/usage-report.ts";
import { foldMinutes } from "./usage-fold.ts";
import { moveHorizon } from "../usage-horizons.ts";
import type { ColumnValue } from "../../../repositories/usage/usage-row.ts";
import {
  details,
  horizonOf,
  stepDetails,
  stepTables,
} from "../../../repositories/usage/usage-steps.ts";

/** Removes at most `limit` rows past their retention; returns how many. */
export function pruneUsage(database: Database, retention: UsageRetention, limit: number): number {
  let removed = 0;
  if (retention.calls !== undefined) removed += pruneCalls(database, retention.calls, limit);
  for (const step of usageSteps) {
    const at = horizonOf(step, retention);
    if (at === undefined || removed >= limit) continue;
    // Reports stop reading that range first, so they never show a part of it.
    moveHorizon(database, step, at);
    if (step === "minute") foldMinutes(database, at);
    removed += pruneSums(database, { step, at }, limit - removed);
  }
  return removed;
}

function pruneCalls(database: Database, before: number, limit: number): number {
  const newest = database
    .query<{ at: number | null }, [number, number]>(
      `SELECT max(started_at) AS at FROM (
         SELECT started_at FROM usage WHERE started_at < ? ORDER BY started_at LIMIT ?)`,
    )
    .get(before, limit);
  if (typeof newest?.at !== "number") return 0;
  // From now on, a missing call of that time may already have been counted.
  moveHorizon(database, "call", newest.at + 1);
  return database.run(
    `DELETE FROM usage WHERE rowid IN (
       SELECT rowid FROM usage WHERE started_at < ? ORDER BY started_at LIMIT ?)`,
    [before, limit],
  ).changes;
}

function pruneSums(
  database: Database,
  { step, at }: { readonly step: UsageStep; readonly at: number },
  limit: number,
): number {
  const table = stepTables[step];
  const prune = database.query<unknown, ColumnValue[]>(
    `DELETE FROM ${table} WHERE (detail, at, group_id) IN (
       SELECT detail, at, group_id FROM ${table} WHERE detail = ? AND at < ? ORDER BY at LIMIT ?)`,
  );
  let removed = 0;
  for (const detail of stepDetails[step]) {
    if (removed >= limit) break;
    removed += prune.run(details[detail], at, limit - removed).changes;
  }
  return removed;
}
