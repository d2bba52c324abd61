import type { Database } from "bun:sqlite";
import type { UsageStep } from "../../../domain/usage/usage-report.ts";
import type { CallFilter } from "../../usage-reports.ts";
import { filteredDimensions, groupCondition, smallestDetail } from "./usage-filter.ts";
import { readFold } from "./rollup/usage-folds.ts";
import { readHorizon } from "./usage-horizons.ts";
import type { ColumnValue } from "./usage-row.ts";
import {
  type Detail,
  details,
  stepDetails,
  stepLengthsMs,
  stepStart,
  stepTables,
} from "./usage-steps.ts";

/** A time in which calls lie; `until` is excluded. */
export interface TimeSpan {
  readonly since: number;
  readonly until: number;
}

/**
 * The last part of a time in which calls fit a filter, as the sums tell it: a minute, or where
 * minutes are not kept any more, an hour or a day. Undefined when there is none. So calls that are
 * rare are found without reading all the others.
 */
export function findCalls(
  database: Database,
  filter: CallFilter,
  { since, until }: TimeSpan,
): TimeSpan | undefined {
  const folded = Math.min(
    readFold(database, { step: "hour", detail: detailFor(filter, "hour") }).at,
    readFold(database, { step: "day", detail: detailFor(filter, "day") }).at,
  );
  // Later calls are perhaps in no hour yet, but in their minutes.
  const open = { since: Math.max(since, folded), until };
  const minute = findStep(database, { filter, step: "minute" }, open);
  if (minute !== undefined) return minute;
  let end = Math.min(until, folded);
  while (since < end) {
    const day = findStep(database, { filter, step: "day" }, { since, until: end });
    if (day === undefined) return undefined;
    const found = findInDay(database, filter, {
      since: day.since,
      until: Math.min(end, day.until),
    });
    if (found !== undefined) return found;
    // What fits lies in the part of the day that was not asked for.
    end = day.since;
  }
  return undefined;
}

function findInDay(database: Database, filter: CallFilter, span: TimeSpan): TimeSpan | undefined {
  if (span.since < readHorizon(database, "hour")) return span;
  const minutesSince = readHorizon(database, "minute");
  let end = span.until;
  while (span.since < end) {
    const within = { since: span.since, until: end };
    const hour = findStep(database, { filter, step: "hour" }, within);
    if (hour === undefined || hour.since < minutesSince) return hour;
    const minutes = { since: hour.since, until: Math.min(end, hour.until) };
    const minute = findStep(database, { filter, step: "minute" }, minutes);
    if (minute !== undefined) return minute;
    end = hour.since;
  }
  return undefined;
}

interface StepQuestion {
  readonly filter: CallFilter;
  readonly step: UsageStep;
}

/** The last step with calls that fit, of those that overlap a time. */
function findStep(
  database: Database,
  { filter, step }: StepQuestion,
  { since, until }: TimeSpan,
): TimeSpan | undefined {
  const detail = detailFor(filter, step);
  const groups = groupCondition(filter, detail);
  const row = database
    .query<{ at: number }, ColumnValue[]>(
      `SELECT at FROM ${stepTables[step]} WHERE detail = ? AND at >= ? AND at < ?
         ${groups.sql}${outcomeCondition(filter)} ORDER BY at DESC LIMIT 1`,
    )
    .get(details[detail], stepStart(since, step), until, ...groups.values);
  return row === null ? undefined : { since: row.at, until: row.at + stepLengthsMs[step] };
}

function detailFor(filter: CallFilter, step: UsageStep): Detail {
  const smallest = smallestDetail(filteredDimensions(filter).map(([dimension]) => dimension));
  return stepDetails[step].includes(smallest) ? smallest : "full";
}

function outcomeCondition({ outcome }: CallFilter): string {
  switch (outcome) {
    case undefined:
      return "";
    case "completed":
      return " AND calls > failed_calls";
    case "abandoned":
      return " AND abandoned_calls > 0";
    case "failed":
    case "interrupted":
      return " AND failed_calls > abandoned_calls";
  }
}
