import { sql } from "kysely";
import { refuseOtherSchema } from "./schema.ts";
import type { DatabaseFacts } from "../store.ts";
import type { Queries, SqlValue } from "./tables.ts";

/** A row by the names of its columns in the database. */
type CopiedRow = Readonly<Record<string, SqlValue>>;

/** A database that nobody else changes while it is open. */
export interface CopyPlace extends AsyncDisposable {
  /** For messages. */
  readonly name: string;
  transact<Result>(work: (queries: Queries) => Promise<Result>): Promise<Result>;
  /** Prepares a complete copy for use. */
  finish?(queries: Queries): Promise<unknown>;
}

/** Why databases cannot be copied, for the operator. */
export class CopyRefused extends Error {
  override readonly name = "CopyRefused";
}

interface CopyOptions {
  readonly source: CopyPlace;
  readonly target: CopyPlace;
  readonly signal: AbortSignal;
  /** Called for each table with the rows it has. */
  readonly onCopied: (table: string, rows: number) => void;
}

interface CopiedTable {
  readonly name: string;
  /** Columns that order and identify its rows. */
  readonly key: readonly string[];
  /** Rows in one statement, whose values stay below what a database takes. */
  readonly batchRows: number;
}

function table(name: string, ...key: readonly string[]): CopiedTable {
  return { name, key: key.length === 0 ? ["id"] : key, batchRows: 250 };
}

/** Tables that are empty in a new database. Rows come after those that they refer to. */
const emptyTables: readonly CopiedTable[] = [
  table("accounts"),
  table("erased_accounts"),
  table("erased_end_users", "digest"),
  table("applications"),
  table("keys"),
  table("secrets", "public_id"),
  table("budgets"),
  table("budget_spend", "budget_id", "period_id", "end_user", "process"),
  table("budget_alerts", "budget_id", "period_id", "threshold", "call_sequence"),
  table("removed_keys", "changed_epoch"),
  table("left_limit_scopes", "key_id"),
  table("users"),
  table("sessions"),
  table("sign_in_links", "user_id"),
  table("management_tokens"),
  // Their bodies are long.
  { ...table("replies"), batchRows: 20 },
  { ...table("call_replies"), batchRows: 20 },
  table("call_reply_shares", "account_id"),
  table("audit", "sequence"),
  table("usage", "sequence"),
  table("cost_adjustments", "call_id", "run"),
  table("reprice_runs", "run"),
  table("event_cursor", "place"),
  table("usage_groups"),
  table("usage_sums", "grain", "at", "group_id"),
  table("price_tables", "version"),
  table("installation", "place"),
];

/** Tables with rows in a new database, which give way to the copy. */
const filledTables: readonly CopiedTable[] = [
  table("epochs", "name"),
  table("usage_horizons", "step"),
];

export const copiedTables: readonly CopiedTable[] = [...emptyTables, ...filledTables];

/**
 * Copies all rows of a database into an empty one of the same schema, in one transaction: a copy that
 * is interrupted leaves nothing. Throws `CopyRefused`.
 */
export async function copyDatabase({ source, target, ...rest }: CopyOptions): Promise<void> {
  await source.transact((from) =>
    target.transact(async (to) => {
      for (const { name } of emptyTables) {
        const { rows } = await sql`select 1 from ${sql.table(name)} limit 1`.execute(to);
        if (rows.length === 0) continue;
        throw new CopyRefused(`the target already has ${name}. Please name a new, empty database.`);
      }
      for (const each of copiedTables) {
        if (filledTables.includes(each)) {
          await sql`delete from ${sql.table(each.name)}`.execute(to);
        }
        let rows = 0;
        for await (const batch of batchesOf(from, each)) {
          if (rest.signal.aborted) throw new CopyRefused("interrupted; the target is still empty");
          await insert(to, each.name, batch);
          rows += batch.length;
        }
        rest.onCopied(each.name, rows);
      }
      await target.finish?.(to);
      await sql`analyze`.execute(to);
    }),
  );
}

/** Throws for a source without the schema of this program. */
export function refuseSource(found: DatabaseFacts): void {
  refuseOtherSchema(found);
  if (found.version === 0) throw new CopyRefused(`${found.path} is empty`);
}

/** All rows of a table in the order of its key, batch by batch. */
async function* batchesOf(
  queries: Queries,
  { name, key, batchRows }: CopiedTable,
): AsyncGenerator<readonly CopiedRow[]> {
  const columns = sql.join(key.map((column) => sql.ref(column)));
  let later = sql``;
  while (true) {
    const { rows } = await sql<CopiedRow>`
      select * from ${sql.table(name)} ${later} order by ${columns} limit ${batchRows}`.execute(
      queries.withoutPlugins(),
    );
    const last = rows.at(-1);
    if (last === undefined) return;
    yield rows;
    if (rows.length < batchRows) return;
    later = sql`where (${columns}) > (${sql.join(key.map((column) => last[column] ?? null))})`;
  }
}

async function insert(queries: Queries, name: string, rows: readonly CopiedRow[]): Promise<void> {
  const columns = Object.keys(rows[0] ?? {}).map((column) => sql.ref(column));
  const values = rows.map((row) => sql`(${sql.join(Object.values(row))})`);
  await sql`insert into ${sql.table(name)} (${sql.join(columns)}) values ${sql.join(values)}`.execute(
    queries.withoutPlugins(),
  );
}
