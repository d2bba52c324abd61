import type { Database } from "bun:sqlite";
import { readMark, writeMark } from "./usage-marks.ts";
import type { ColumnValue } from "./usage-row.ts";
import { addToOld, compactSums } from "./usage-sum-rows.ts";
import {
  type Detail,
  details,
  stepDetails,
  stepLengthsMs,
  stepStart,
  stepTables,
} from "./usage-steps.ts";

/**
 * How long minutes wait before they become part of hours and days. Most calls end sooner; what comes
 * later has to be added to each step by itself.
 */
const foldDelayMs = 300_000;

/** Latencies grow by what is joined to them; so long ones are made compact. */
const longLatencies = { minute: 100, hour: 500, day: 500 };

/**
 * Makes minutes part of hours and days, once. Done when a minute is over and not with every batch:
 * hours and days have many rows, and writing them is most of what a report costs. In a transaction.
 */
export function foldMinutes(database: Database, until: number): void {
  const since = readMark(database, "folded");
  if (until <= since) return;
  const minutes = database
    .query<{ at: number }, [number, number, number]>(
      "SELECT DISTINCT at FROM usage_minutes WHERE detail = ? AND at >= ? AND at < ?",
    )
    .all(details.full, since, until);
  for (const { at } of minutes) foldMinute(database, at);
  writeMark(database, "folded", until);
}

/** Up to when minutes may be folded after a call of this time. */
export function foldableUntil(newestCallAt: number): number {
  return stepStart(newestCallAt - foldDelayMs, "minute");
}

/** Folds all there is. In a transaction. */
export function foldAllMinutes(database: Database): void {
  const newest = database
    .query<{ at: number | null }, []>(
      `SELECT max(at) AS at FROM usage_minutes WHERE detail = ${details.full}`,
    )
    .get();
  if (typeof newest?.at === "number") foldMinutes(database, newest.at + stepLengthsMs.minute);
}

function foldMinute(database: Database, minute: number): void {
  compactSums(database, { step: "minute", detail: "full", at: minute }, longLatencies.minute);
  for (const step of ["hour", "day"] as const) {
    const at = stepStart(minute, step);
    for (const detail of stepDetails[step]) {
      const fold = foldInto(stepTables[step], groupColumns[detail]);
      database.query<unknown, ColumnValue[]>(fold).run(details[detail], at, details.full, minute);
      compactSums(database, { step, detail, at }, longLatencies[step]);
    }
  }
}

const groupColumns: Readonly<Record<Detail, string>> = {
  full: "id",
  key: "key_group_id",
  model: "model_group_id",
  route: "route_group_id",
};

function foldInto(table: string, groupColumn: string): string {
  return `
    INSERT INTO ${table}
    SELECT ?, ?, groups.${groupColumn}, sum(calls), sum(failed_calls), sum(abandoned_calls),
      sum(input_tokens), sum(output_tokens), sum(cached_input_tokens), sum(estimated_tokens),
      group_concat(durations, ''), group_concat(first_events, '')
    FROM usage_minutes AS minutes CROSS JOIN usage_groups AS groups ON groups.id = group_id
    WHERE minutes.detail = ? AND at = ? GROUP BY groups.${groupColumn} ${addToOld}`;
}
