import { sql } from "kysely";
import type { Queries } from "../tables.ts";
import { compareTable, type TableSummary } from "./compare-tables.ts";
import { type CopiedTable, largeTables, smallTables } from "./copied-tables.ts";
import { beginCopy, endCopy, noteProgress, readProgress } from "./copy-progress.ts";
import { CopyRefused, type CopyPlace, type CopyTarget } from "./copy-place.ts";
import { batchesOf, positionOf } from "./copy-rows.ts";

export interface CopyOptions {
  readonly source: CopyPlace;
  readonly target: CopyTarget;
  readonly signal: AbortSignal;
  /** Called when an unfinished copy goes on. */
  readonly onResumed: () => void;
  /** Called after each batch. */
  readonly onCopied: (progress: CopyProgress) => void;
  /** Called before the copy is compared. */
  readonly onComparing: () => void;
}

export interface CopyProgress {
  readonly table: string;
  readonly rows: number;
  readonly of: number;
}

/**
 * Copies all rows of a database into an empty one of the same schema, and compares them. May be
 * interrupted at any point and repeated. Throws `CopyRefused`.
 */
export async function copyDatabase(options: CopyOptions): Promise<readonly TableSummary[]> {
  const { source, target, onResumed, onComparing } = options;
  return source.transact(async (from) => {
    const state = await stateOf(from);
    if (await target.transact((to) => beginCopy(to, state))) onResumed();
    for (const table of largeTables) await copyTable(from, table, options);
    await target.transact((to) => replaceSmallTables(from, to, target));
    onComparing();
    return target.transact(async (to) => {
      const summaries: TableSummary[] = [];
      for (const table of [...largeTables, ...smallTables]) {
        refuseIfInterrupted(options);
        summaries.push(await compareTable(table, { from, to }));
      }
      await target.finish(to);
      await endCopy(to);
      return summaries;
    });
  });
}

/** Tells this database, and this state of it, from others. */
async function stateOf(queries: Queries): Promise<string> {
  const { rows } = await sql<Record<string, unknown>>`
    select (select id from installation) as installation,
      (select value from epochs where name = 'keys') as epoch,
      (select max(sequence) from audit) as audit,
      (select count(*) from usage) as calls,
      (select max(started_at) from usage) as newest`.execute(queries);
  return JSON.stringify(rows[0]);
}

async function copyTable(from: Queries, table: CopiedTable, options: CopyOptions): Promise<void> {
  const { target, onCopied } = options;
  const begun = await target.transact((to) => readProgress(to, table));
  if (begun.isComplete) return;
  const of = await countRows(from, table);
  let { rows } = begun;
  for await (const batch of batchesOf(from, table, begun.after)) {
    refuseIfInterrupted(options);
    const last = batch.at(-1);
    if (last === undefined) break;
    rows += batch.length;
    const state = { rows, after: positionOf(table, last), isComplete: false };
    await target.transact(async (to) => {
      await target.insert(to, table.name, batch);
      await noteProgress(to, table, state);
    });
    onCopied({ table: table.name, rows, of });
  }
  await target.transact((to) => noteProgress(to, table, { rows, isComplete: true }));
}

async function countRows(queries: Queries, { name }: CopiedTable): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*) as count from ${sql.table(name)}`.execute(queries);
  return rows[0]?.count ?? 0;
}

async function replaceSmallTables(from: Queries, to: Queries, target: CopyTarget): Promise<void> {
  for (const table of smallTables) {
    await sql`delete from ${sql.table(table.name)}`.execute(to);
    for await (const rows of batchesOf(from, table)) await target.insert(to, table.name, rows);
  }
}

function refuseIfInterrupted({ signal }: CopyOptions): void {
  if (signal.aborted) throw new CopyRefused("interrupted; the same command goes on from here");
}
