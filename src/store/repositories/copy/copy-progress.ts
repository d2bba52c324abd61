import { sql } from "kysely";
import type { Queries } from "../tables.ts";
import { type CopiedTable, largeTables } from "./copied-tables.ts";
import { CopyRefused, progressTable } from "./copy-place.ts";
import type { Position } from "./copy-rows.ts";

/** How far a table is copied. */
export interface TableProgress {
  readonly rows: number;
  /** The key of the last row; undefined at the beginning. */
  readonly after?: Position | undefined;
  readonly isComplete: boolean;
}

interface ProgressRow {
  readonly item: string;
  readonly rows: number;
  /** The key of the last row as JSON; of the first item, the source. */
  readonly position: string | null;
  readonly is_complete: number;
}

const progress = sql.table(progressTable);
/** The row that names the source. */
const origin = "";

/**
 * Begins a copy in an empty database, or goes on with one of the same source in the same state.
 * Throws `CopyRefused`. Returns whether it goes on.
 */
export async function beginCopy(queries: Queries, source: string): Promise<boolean> {
  const create = sql`create table if not exists ${progress}
    (item text primary key, rows bigint not null, position text, is_complete smallint not null)`;
  await create.execute(queries);
  const begun = (await readItem(queries, origin))?.position;
  if (begun === undefined) {
    await refuseOtherData(queries);
    await writeItem(queries, { item: origin, rows: 0, position: source, is_complete: 0 });
    return false;
  }
  if (begun === source) return true;
  throw new CopyRefused(
    "the target has an unfinished copy of another database, or of this one before it changed. " +
      "Please name a new, empty database.",
  );
}

export async function readProgress(
  queries: Queries,
  { name }: CopiedTable,
): Promise<TableProgress> {
  const item = await readItem(queries, name);
  if (item === undefined) return { rows: 0, isComplete: false };
  const { rows, position, is_complete: isComplete } = item;
  return { rows, after: readPosition(position), isComplete: isComplete === 1 };
}

/** In the transaction that stores the rows. */
export async function noteProgress(
  queries: Queries,
  { name }: CopiedTable,
  { rows, after, isComplete }: TableProgress,
): Promise<void> {
  const position = after === undefined ? null : JSON.stringify(after);
  await writeItem(queries, { item: name, rows, position, is_complete: isComplete ? 1 : 0 });
}

export async function endCopy(queries: Queries): Promise<void> {
  await sql`drop table ${progress}`.execute(queries);
}

async function refuseOtherData(queries: Queries): Promise<void> {
  for (const { name } of largeTables) {
    const { rows } = await sql`select 1 from ${sql.table(name)} limit 1`.execute(queries);
    if (rows.length === 0) continue;
    throw new CopyRefused(`the target already has ${name}. Please name a new, empty database.`);
  }
}

async function readItem(queries: Queries, item: string): Promise<ProgressRow | undefined> {
  const { rows } = await sql<ProgressRow>`
    select * from ${progress} where item = ${item}`.execute(queries.withoutPlugins());
  return rows[0];
}

async function writeItem(queries: Queries, row: ProgressRow): Promise<void> {
  const { item, rows, position, is_complete: isComplete } = row;
  await sql`insert into ${progress} values (${item}, ${rows}, ${position}, ${isComplete})
    on conflict (item) do update set rows = excluded.rows, position = excluded.position,
      is_complete = excluded.is_complete`.execute(queries);
}

function readPosition(text: string | null): Position | undefined {
  const position: unknown = text === null ? undefined : JSON.parse(text);
  return Array.isArray(position) && position.every(isKeyValue) ? position : undefined;
}

function isKeyValue(value: unknown): value is string | number {
  return typeof value === "string" || typeof value === "number";
}
