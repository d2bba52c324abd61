import { sql } from "kysely";
import { storableText } from "../storable-text.ts";
import type { Queries, SqlValue } from "../tables.ts";
import type { CopiedTable } from "./copied-tables.ts";
import type { CopiedRow } from "./copy-place.ts";

/** The values of a row's key. */
export type Position = readonly SqlValue[];

/** The next rows of a table in the order of its key. */
export async function readRows(
  queries: Queries,
  { name, key, batchRows }: CopiedTable,
  after: Position | undefined,
): Promise<readonly CopiedRow[]> {
  const columns = sql.join(key.map((column) => sql.ref(column)));
  const later = after === undefined ? sql`` : sql`where (${columns}) > (${sql.join(after)})`;
  const { rows } = await sql<CopiedRow>`
    select * from ${sql.table(name)} ${later} order by ${columns} limit ${batchRows}`.execute(
    queries.withoutPlugins(),
  );
  return rows;
}

export function positionOf({ key }: CopiedTable, row: CopiedRow): Position {
  return key.map((column) => row[column] ?? null);
}

/** All rows of a table, batch by batch. */
export async function* batchesOf(
  queries: Queries,
  table: CopiedTable,
  start?: Position,
): AsyncGenerator<readonly CopiedRow[]> {
  let after = start;
  while (true) {
    const rows = await readRows(queries, table, after);
    const last = rows.at(-1);
    if (last === undefined) return;
    yield rows;
    if (rows.length < table.batchRows) return;
    after = positionOf(table, last);
  }
}

/** The same text for the same row in any database. */
export function textOfRow(row: CopiedRow): string {
  const columns = Object.keys(row).toSorted();
  return JSON.stringify(columns.map((column) => [column, plainValue(row[column])]));
}

function plainValue(value: SqlValue | undefined): unknown {
  if (value instanceof Uint8Array) return { bytes: value.toHex() };
  return typeof value === "string" ? storableText(value) : value;
}
