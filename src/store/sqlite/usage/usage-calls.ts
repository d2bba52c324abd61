import type { Database } from "bun:sqlite";
import type { UsageRecord } from "../../../domain/usage/usage.ts";
import type { Page, PageRequest } from "../../control-store.ts";
import type { CallFilter } from "../../usage-reports.ts";
import type { SqliteConnection } from "../connection/connection.ts";
import { decodeCursor, encodeCursor, type ListPlace } from "../../repositories/cursor.ts";
import { filterCondition, filteredDimensions } from "./usage-filter.ts";
import { type ColumnValue, toRecord, type UsageRow } from "./usage-row.ts";
import { findCalls, type TimeSpan } from "./usage-search.ts";
import { nextTurn } from "../../../domain/waiting/next-turn.ts";

/** Single calls, newest first. */
export async function listCalls(
  connection: Pick<SqliteConnection, "use">,
  filter: CallFilter,
  { limit, after }: PageRequest,
): Promise<Page<UsageRecord>> {
  const place = after === undefined ? { at: filter.until, id: "" } : decodeCursor(after);
  const rows: UsageRow[] = [];
  // One more than asked for: it tells whether there is another page.
  const wanted = limit + 1;
  // Calls of the place's own millisecond may follow it.
  let until = Math.min(filter.until, place.at + 1);
  while (rows.length < wanted && filter.since < until) {
    const part = await connection.use((database) => {
      const span = findSpan(database, filter, { since: filter.since, until });
      if (span === undefined) return undefined;
      return { span, rows: readCalls(database, { filter, place, span }, wanted - rows.length) };
    });
    if (part === undefined) break;
    rows.push(...part.rows);
    until = part.span.since;
    await nextTurn();
  }
  const items = rows.slice(0, limit).map(toRecord);
  const last = rows.length > limit ? items.at(-1) : undefined;
  const next = last === undefined ? undefined : encodeCursor({ at: last.startedAt, id: last.id });
  return { items, next };
}

/** The time to read next: all of it, when an index leads from call to call. */
function findSpan(database: Database, filter: CallFilter, span: TimeSpan): TimeSpan | undefined {
  if (filter.mayBeBilledTwice) return findBilledTwice(database, span);
  const [first, ...others] = filteredDimensions(filter).map(([dimension]) => dimension);
  const isIndexed = first === undefined || first === "key" || first === "account";
  if (isIndexed && others.length === 0 && filter.outcome === undefined) return span;
  const found = findCalls(database, filter, span);
  if (found === undefined) return undefined;
  return {
    since: Math.max(found.since, span.since),
    until: Math.min(found.until, span.until),
  };
}

/** Most calls that may be billed twice that are looked at in one step, whatever else is asked. */
const billedTwiceAtOnce = 2_000;

/** The last part of a time that has this many of them at most, but for those of one millisecond. */
function findBilledTwice(database: Database, { since, until }: TimeSpan): TimeSpan {
  const row = database
    .query<{ started_at: number }, ColumnValue[]>(
      `SELECT started_at FROM usage INDEXED BY usage_billed_twice
       WHERE may_be_billed_twice = 1 AND started_at >= ? AND started_at < ?
       ORDER BY started_at DESC LIMIT 1 OFFSET ?`,
    )
    .get(since, until, billedTwiceAtOnce);
  return { since: row?.started_at ?? since, until };
}

interface CallsQuestion {
  readonly filter: CallFilter;
  readonly place: ListPlace;
  readonly span: TimeSpan;
}

function readCalls(
  database: Database,
  { filter, place, span }: CallsQuestion,
  limit: number,
): UsageRow[] {
  const condition = filterCondition(filter);
  const outcome = filter.outcome === undefined ? "" : " AND outcome = ?";
  const billedTwice = filter.mayBeBilledTwice
    ? { index: "INDEXED BY usage_billed_twice", sql: "may_be_billed_twice = 1 AND" }
    : { index: "", sql: "" };
  const query = database.query<UsageRow, ColumnValue[]>(
    `SELECT * FROM usage ${billedTwice.index} WHERE ${billedTwice.sql} started_at >= ? AND started_at < ?
       AND (started_at, id) < (?, ?)${condition.sql}${outcome}
     ORDER BY started_at DESC, id DESC LIMIT ?`,
  );
  const { since, until } = span;
  const outcomes = filter.outcome === undefined ? [] : [filter.outcome];
  return query.all(since, until, place.at, place.id, ...condition.values, ...outcomes, limit);
}
