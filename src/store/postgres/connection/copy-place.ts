import { sql } from "kysely";
import type { Client } from "pg";
import { nameOfDatabase } from "../../../domain/addresses.ts";
import {
  type CopiedRow,
  CopyRefused,
  type CopyTarget,
  refuseSource,
} from "../../repositories/copy-database.ts";
import { UnusableDatabase } from "../../errors.ts";
import { storableText } from "../../repositories/row.ts";
import type { Queries, SqlValue } from "../../repositories/tables.ts";
import { beginAlone, beginCopying } from "./lanes.ts";
import { createClient } from "./pool.ts";
import { meaningOf, troubleOf } from "./postgres-trouble.ts";
import { prepareDatabase, readVersion } from "./prepare-database.ts";
import { inSession } from "./session.ts";

/** Opens a database that no gateway uses. Throws `CopyRefused`. */
export async function openPlace(
  url: string,
  { isCreating }: { readonly isCreating: boolean },
): Promise<CopyTarget> {
  const name = nameOfDatabase(url);
  const client = await createClient({ url, setting: name }).catch((error: unknown) => {
    throw refusalOf(name, error);
  });
  try {
    await client.connect();
    await client.query(
      "SET application_name = 'sluice copy'; SET idle_in_transaction_session_timeout = 0",
    );
    await client.query(beginCopying);
    await refuseUsers(client, name);
    await prepareDatabase(client, { name, isCreating, owner: undefined });
    refuseSource({ name, version: await readVersion(client) });
    return new ServerDatabase(name, client);
  } catch (error) {
    client.end().catch(() => undefined);
    throw refusalOf(name, error);
  }
}

class ServerDatabase implements CopyTarget {
  readonly name: string;
  readonly #client: Client;

  constructor(name: string, client: Client) {
    this.name = name;
    this.#client = client;
  }

  /** Alone, so that a gateway which starts meanwhile changes nothing. */
  async transact<Result>(work: (queries: Queries) => Promise<Result>): Promise<Result> {
    try {
      await this.#client.query(beginAlone);
      const result = await inSession(this.#client, work);
      await this.#client.query("COMMIT");
      return result;
    } catch (error) {
      await this.#client.query("ROLLBACK").catch(() => undefined);
      throw error instanceof CopyRefused ? error : meaningOf(error);
    }
  }

  async insert(queries: Queries, table: string, rows: readonly CopiedRow[]): Promise<void> {
    const [first = {}] = rows;
    const columns = sql.join(Object.keys(first).map((column) => sql.ref(column)));
    // All rows in one parameter, of which 65,535 would be too few.
    const values = JSON.stringify(rows.map(toJson));
    await sql`insert into ${sql.table(table)} (${columns}) overriding system value
      select ${columns} from json_populate_recordset(null::${sql.table(table)}, ${values})`.execute(
      queries,
    );
  }

  async finish(queries: Queries): Promise<void> {
    for (const [table, column] of [
      ["usage_groups", "id"],
      ["usage", "sequence"],
    ] as const) {
      const next = sql`select coalesce(max(${sql.ref(column)}), 0) + 1 from ${sql.table(table)}`;
      await sql`select setval(pg_get_serial_sequence(${table}, ${column}), (${next}), false)`.execute(
        queries,
      );
    }
    await sql`analyze`.execute(queries);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#client.end();
  }
}

function toJson(row: CopiedRow): object {
  return Object.fromEntries(Object.entries(row).map(([column, value]) => [column, plain(value)]));
}

/** Bytes as the server writes them, and texts that it accepts. */
function plain(value: SqlValue): string | number | null {
  if (value instanceof Uint8Array) return `\\x${value.toHex()}`;
  return typeof value === "string" ? storableText(value) : value;
}

async function refuseUsers(client: Client, name: string): Promise<void> {
  const { rows } = await client.query(`SELECT 1 FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = 'sluice' LIMIT 1`);
  if (rows.length > 0) throw new CopyRefused(`${name} is in use. Please stop its gateways first.`);
}

function refusalOf(name: string, error: unknown): unknown {
  if (error instanceof CopyRefused) return error;
  if (error instanceof UnusableDatabase) return new CopyRefused(error.message);
  const what = troubleOf(error)?.what ?? "cannot be used";
  return new CopyRefused(`the database ${name} ${what}`, { cause: error });
}
