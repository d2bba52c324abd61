import { type Expression, sql } from "kysely";
import type { UsageStep } from "../../../domain/usage/usage-report.ts";
import type { CallFilter } from "../../usage-reports.ts";
import type { Queries } from "../tables.ts";
import { readFold, readHorizons } from "./fold-positions.ts";
import { all, filteredDimensions, groupConditions, smallestDetail } from "./usage-filter.ts";
import {
  type Detail,
  details,
  stepDetails,
  stepLengthsMs,
  stepStart,
  stepTables,
} from "./usage-steps.ts";

/** A time range with calls; `until` is excluded. */
export interface TimeSpan {
  readonly since: number;
  readonly until: number;
}

/**
 * The last step of a time range in which calls match a filter, found in the sums: a minute, or an
 * hour or a day where minutes are no longer kept. Finds rare calls without reading all others.
 */
export async function findCalls(
  queries: Queries,
  filter: CallFilter,
  { since, until }: TimeSpan,
): Promise<TimeSpan | undefined> {
  const hours = await readFold(queries, { step: "hour", detail: detailFor(filter, "hour") });
  const ofDays = await readFold(queries, { step: "day", detail: detailFor(filter, "day") });
  const folded = Math.min(hours.at, ofDays.at);
  // Later calls may not be folded into hours yet, but are in their minutes.
  const open = { since: Math.max(since, folded), until };
  const minute = await findStep(queries, { filter, step: "minute" }, open);
  if (minute !== undefined) return minute;
  let end = Math.min(until, folded);
  while (since < end) {
    const day = await findStep(queries, { filter, step: "day" }, { since, until: end });
    if (day === undefined) return undefined;
    const found = await findInDay(queries, filter, {
      since: day.since,
      until: Math.min(end, day.until),
    });
    if (found !== undefined) return found;
    // The matching calls are in the part of the day outside the range.
    end = day.since;
  }
  return undefined;
}

async function findInDay(
  queries: Queries,
  filter: CallFilter,
  span: TimeSpan,
): Promise<TimeSpan | undefined> {
  const { hour: hoursSince, minute: minutesSince } = await readHorizons(queries);
  if (span.since < hoursSince) return span;
  let end = span.until;
  while (span.since < end) {
    const within = { since: span.since, until: end };
    const hour = await findStep(queries, { filter, step: "hour" }, within);
    if (hour === undefined || hour.since < minutesSince) return hour;
    const minutes = { since: hour.since, until: Math.min(end, hour.until) };
    const minute = await findStep(queries, { filter, step: "minute" }, minutes);
    if (minute !== undefined) return minute;
    end = hour.since;
  }
  return undefined;
}

interface StepQuestion {
  readonly filter: CallFilter;
  readonly step: UsageStep;
}

/** The last step with matching calls that overlaps a time range. */
async function findStep(
  queries: Queries,
  { filter, step }: StepQuestion,
  { since, until }: TimeSpan,
): Promise<TimeSpan | undefined> {
  const detail = detailFor(filter, step);
  const conditions = [
    sql`detail = ${details[detail]} and at >= ${stepStart(since, step)} and at < ${until}`,
    ...groupConditions(filter, detail),
    ...outcomeConditions(filter),
  ];
  const latest = sql<{ at: number }>`
    select at from ${sql.table(stepTables[step])} where ${all(conditions)}
    order by at desc limit 1`;
  const [row] = (await latest.execute(queries)).rows;
  return row && { since: row.at, until: row.at + stepLengthsMs[step] };
}

function detailFor(filter: CallFilter, step: UsageStep): Detail {
  const smallest = smallestDetail(filteredDimensions(filter).map(([dimension]) => dimension));
  return stepDetails[step].includes(smallest) ? smallest : "full";
}

function outcomeConditions({ outcome }: CallFilter): readonly Expression<unknown>[] {
  switch (outcome) {
    case undefined:
      return [];
    case "completed":
      return [sql`calls > failed_calls`];
    case "abandoned":
      return [sql`abandoned_calls > 0`];
    case "failed":
    case "interrupted":
      return [sql`failed_calls > abandoned_calls`];
  }
}
