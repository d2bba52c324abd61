import { sql } from "kysely";
import { needsCalls, type UsageRecord } from "../../../domain/usage/usage.ts";
import { nextTurn } from "../../../domain/waiting/wait.ts";
import type { Page, PageRequest } from "../../control-store.ts";
import type { CallFilter } from "../../usage-reports.ts";
import type { Queries, SqlConnection, UsageRow } from "../tables.ts";
import { decodeCursor, encodeCursor, type ListPosition } from "../cursor.ts";
import { all, callConditions, filteredColumns, sumConditions } from "./usage-filter.ts";
import { type Grain, stepLengthsMs, stepStart } from "./usage-range.ts";
import { latestCalls, type TimeSpan } from "./call-spans.ts";
import { toRecord } from "./usage-row.ts";
import { readHorizons } from "./usage-store.ts";

/** Single calls, newest first. */
export async function listCalls(
  connection: Pick<SqlConnection, "read">,
  filter: CallFilter,
  { limit, after }: PageRequest,
): Promise<Page<UsageRecord>> {
  const position = after === undefined ? { at: filter.until, id: "" } : decodeCursor(after);
  const rows: UsageRow[] = [];
  // One extra row shows whether there is another page.
  const wanted = limit + 1;
  // There may be further calls in the millisecond of the cursor.
  let until = Math.min(filter.until, position.at + 1);
  let isRare = false;
  while (rows.length < wanted && filter.since < until) {
    const part = await connection.read(async (queries) => {
      const rest = { since: filter.since, until };
      const end = isRare ? await findEnd(queries, filter, rest) : until;
      if (end === undefined) return undefined;
      const found = { ...rest, until: end };
      const span = isIndexed(filter) ? found : await latestCalls(queries, filter, found);
      const question = { filter, position, span };
      return { span, rows: await readCalls(queries, question, wanted - rows.length) };
    });
    if (part === undefined) break;
    rows.push(...part.rows);
    until = part.span.since;
    // The sums do not tell which calls may be billed twice.
    isRare = part.rows.length === 0 && filter.mayBeBilledTwice !== true;
    await nextTurn();
  }
  const items = rows.slice(0, limit).map(toRecord);
  const last = rows.length > limit ? items.at(-1) : undefined;
  const next = last === undefined ? undefined : encodeCursor({ at: last.startedAt, id: last.id });
  return { items, next };
}

/** Whether an index has exactly the calls of the filter, by time. */
function isIndexed(filter: CallFilter): boolean {
  if (filter.mayBeBilledTwice === true || needsCalls(filter, [])) return false;
  const [column = "key_id", ...others] = filteredColumns(filter).map(([name]) => name);
  return others.length === 0 && (column === "key_id" || column === "account_id");
}

/**
 * The end of the last hour of a range with matching calls, or of the last day where hours are not
 * kept. Finds rare calls in the sums, without reading all others.
 */
async function findEnd(
  queries: Queries,
  filter: CallFilter,
  { since, until }: TimeSpan,
): Promise<number | undefined> {
  const { hour: hoursSince } = await readHorizons(queries);
  let end = until;
  while (since < end) {
    const day = await lastWithCalls(queries, { filter, grain: "day" }, { since, until: end });
    if (day === undefined || day.since < hoursSince) return day?.until;
    const hour = await lastWithCalls(queries, { filter, grain: "hour" }, day);
    if (hour !== undefined) return hour.until;
    // The matching calls are in the part of the day outside the range.
    end = day.since;
  }
  return undefined;
}

/** The part of a range in the last hour or day with matching calls. */
async function lastWithCalls(
  queries: Queries,
  { filter, grain }: { readonly filter: CallFilter; readonly grain: Grain },
  { since, until }: TimeSpan,
): Promise<TimeSpan | undefined> {
  const first = stepStart(since, grain);
  const { rows } = await sql<{ at: number }>`
    select at from usage_sums
    where ${all([
      sql`grain = ${grain} and at >= ${first} and at < ${until}`,
      ...sumConditions(filter),
    ])}
    order by at desc limit 1`.execute(queries);
  const at = rows[0]?.at;
  if (at === undefined) return undefined;
  return { since: Math.max(at, since), until: Math.min(at + stepLengthsMs[grain], until) };
}

interface CallsQuestion {
  readonly filter: CallFilter;
  readonly position: ListPosition;
  readonly span: TimeSpan;
}

async function readCalls(
  queries: Queries,
  { filter, position, span }: CallsQuestion,
  limit: number,
): Promise<readonly UsageRow[]> {
  const conditions = [
    ...callConditions(filter),
    sql`started_at >= ${span.since} and started_at < ${span.until}`,
    sql`(started_at, id) < (${position.at}, ${position.id})`,
  ];
  const { rows } = await sql<UsageRow>`
    select * from usage where ${all(conditions)}
    order by started_at desc, id desc limit ${limit}`.execute(queries);
  return rows;
}
