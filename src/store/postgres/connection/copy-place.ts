import { sql } from "kysely";
import type { Client } from "pg";
import { nameOfDatabase } from "../../../domain/addresses.ts";
import { type CopyPlace, CopyRefused, refuseSource } from "../../repositories/copy-database.ts";
import { UnusableDatabase } from "../../errors.ts";
import type { Queries } from "../../repositories/tables.ts";
import { beginAlone, beginCopying } from "./lanes.ts";
import { createClient } from "./pool.ts";
import { meaningOf, troubleOf } from "./postgres-trouble.ts";
import { prepareDatabase, readFacts } from "./prepare-database.ts";
import { inSession } from "./session.ts";

/** Opens a database that no gateway uses. Throws `CopyRefused`. */
export async function openPlace(
  url: string,
  { isCreating }: { readonly isCreating: boolean },
): Promise<CopyPlace> {
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
    refuseSource(await readFacts(client, name));
    return {
      name,
      transact: (work) => transactAlone(client, work),
      finish: (queries) => countOn.execute(queries),
      [Symbol.asyncDispose]: () => client.end(),
    };
  } catch (error) {
    client.end().catch(() => undefined);
    throw refusalOf(name, error);
  }
}

/** Alone, so that a gateway which starts meanwhile changes nothing. */
async function transactAlone<Result>(
  client: Client,
  work: (queries: Queries) => Promise<Result>,
): Promise<Result> {
  try {
    await client.query(beginAlone);
    const result = await inSession(client, work);
    await client.query("COMMIT");
    return result;
  } catch (error) {
    await client.query("ROLLBACK").catch(() => undefined);
    throw error instanceof CopyRefused ? error : meaningOf(error);
  }
}

/** The database counts on from the rows of the copy. */
const countOn = sql`
  select setval(pg_get_serial_sequence('usage', 'sequence'),
    (select coalesce(max(sequence), 0) + 1 from usage), false),
  setval(pg_get_serial_sequence('usage_groups', 'id'),
    (select coalesce(max(id), 0) + 1 from usage_groups), false)`;

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
