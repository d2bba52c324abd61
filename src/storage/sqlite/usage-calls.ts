import type { Database } from "bun:sqlite";
import type { UsageRecord } from "../../domain/usage.ts";
import type { Page, PageRequest } from "../control-store.ts";
import type { CallFilter } from "../usage-reports.ts";
import type { SqliteConnection } from "./connection.ts";
import { decodeCursor, encodeCursor, type ListPlace } from "./cursor.ts";
import { filterCondition } from "./usage-filter.ts";
import { type ColumnValue, toRecord, type UsageRow } from "./usage-row.ts";

/** Single calls, newest first. */
export async function listCalls(
  connection: Pick<SqliteConnection, "use">,
  filter: CallFilter,
  { limit, after }: PageRequest,
): Promise<Page<UsageRecord>> {
  const place = after === undefined ? { at: filter.until, id: "" } : decodeCursor(after);
  const rows = await connection.use((database) =>
    readCalls(database, { filter, place }, limit + 1),
  );
  const items = rows.slice(0, limit).map(toRecord);
  const last = rows.length > limit ? items.at(-1) : undefined;
  return {
    items,
    next: last === undefined ? undefined : encodeCursor({ at: last.startedAt, id: last.id }),
  };
}

function readCalls(
  database: Database,
  { filter, place }: { readonly filter: CallFilter; readonly place: ListPlace },
  limit: number,
): UsageRow[] {
  const condition = filterCondition(filter);
  const outcome = filter.outcome === undefined ? "" : " AND outcome = ?";
  const query = database.query<UsageRow, ColumnValue[]>(
    `SELECT * FROM usage WHERE started_at >= ? AND started_at < ?
       AND (started_at, id) < (?, ?)${condition.sql}${outcome}
     ORDER BY started_at DESC, id DESC LIMIT ?`,
  );
  const outcomes = filter.outcome === undefined ? [] : [filter.outcome];
  const { at, id } = place;
  const { since, until } = filter;
  return query.all(since, until, at, id, ...condition.values, ...outcomes, limit);
}
