import { type Expression, sql } from "kysely";
import type { UsageRecord } from "../../../domain/usage/usage.ts";
import type { Page, PageRequest } from "../../control-store.ts";
import type { CallFilter } from "../../usage-reports.ts";
import type { SqlConnection } from "../connection.ts";
import { decodeCursor, encodeCursor, type ListPosition } from "../cursor.ts";
import { unindexed } from "../entity-table.ts";
import type { Queries, UsageRow } from "../tables.ts";
import { dimensionColumns, filteredDimensions } from "./usage-filter.ts";
import { toRecord } from "./usage-record.ts";
import { findCalls, type TimeSpan } from "./usage-search.ts";
import { nextTurn } from "../../../domain/waiting/next-turn.ts";

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
  while (rows.length < wanted && filter.since < until) {
    const part = await connection.read(async (queries) => {
      const span = await findSpan(queries, filter, { since: filter.since, until });
      if (span === undefined) return undefined;
      const question = { filter, position, span };
      return { span, rows: await readCalls(queries, question, wanted - rows.length) };
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

/** The range to read next: all of it when an index finds the calls. */
async function findSpan(
  queries: Queries,
  filter: CallFilter,
  span: TimeSpan,
): Promise<TimeSpan | undefined> {
  if (filter.mayBeBilledTwice) return findBilledTwice(queries, span);
  const [first, ...others] = filteredDimensions(filter).map(([dimension]) => dimension);
  const isIndexed = first === undefined || first === "key" || first === "account";
  if (isIndexed && others.length === 0 && filter.outcome === undefined) return span;
  const found = await findCalls(queries, filter, span);
  if (found === undefined) return undefined;
  return {
    since: Math.max(found.since, span.since),
    until: Math.min(found.until, span.until),
  };
}

/** Most calls that may be billed twice that one step scans. */
const billedTwiceAtOnce = 2_000;

/** The last part of a range with at most this many of them, apart from ties of one millisecond. */
async function findBilledTwice(queries: Queries, { since, until }: TimeSpan): Promise<TimeSpan> {
  const row = await queries
    .selectFrom("usage")
    .select("startedAt")
    .where(isBilledTwice)
    .where("startedAt", ">=", since)
    .where("startedAt", "<", until)
    .orderBy("startedAt", "desc")
    .orderBy("id", "desc")
    .limit(1)
    .offset(billedTwiceAtOnce)
    .executeTakeFirst();
  return { since: row?.startedAt ?? since, until };
}

/** A literal, not a parameter, to match the condition of the partial index. */
const isBilledTwice = sql<boolean>`may_be_billed_twice = 1`;

interface CallsQuestion {
  readonly filter: CallFilter;
  readonly position: ListPosition;
  readonly span: TimeSpan;
}

function readCalls(
  queries: Queries,
  { filter, position, span }: CallsQuestion,
  limit: number,
): Promise<UsageRow[]> {
  const { outcome, mayBeBilledTwice } = filter;
  return queries
    .selectFrom("usage")
    .selectAll()
    .$if(mayBeBilledTwice === true, (query) => query.where(isBilledTwice))
    .where("startedAt", ">=", span.since)
    .where("startedAt", "<", span.until)
    .where(sql<boolean>`(started_at, id) < (${position.at}, ${position.id})`)
    .where((eb) => eb.and(conditionsOf(filter)))
    .$if(outcome !== undefined, (query) => query.where("outcome", "=", outcome ?? "completed"))
    .orderBy("startedAt", "desc")
    .orderBy("id", "desc")
    .limit(limit)
    .execute();
}

/** Calls that may be billed twice are found only by their own index. */
function conditionsOf(filter: CallFilter): Expression<boolean>[] {
  return filteredDimensions(filter).map(([dimension, value]) => {
    const column = dimensionColumns[dimension];
    const found = filter.mayBeBilledTwice ? unindexed(column) : sql.ref(column);
    return sql`${found} = ${value}`;
  });
}
