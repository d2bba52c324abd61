import type { ClientBase } from "pg";
import { WrongDatabase } from "../../errors.ts";
import type { DatabaseOwner } from "../../installation.ts";
import { refuseOtherSchema, schemaVersion } from "../../schema-version.ts";
import { claimDatabase, hasTable, readFacts } from "./installation-row.ts";
import { beginIn } from "./lanes.ts";
import { schema } from "../schema.ts";

/** The driver takes 0 for the time-out of the connection. */
const longestTimerMs = 2 ** 31 - 1;

export interface PrepareSettings {
  /** The URL without its password. */
  readonly name: string;
  /** Whether to create the schema in an empty database. */
  readonly isCreating: boolean;
  readonly owner: DatabaseOwner | undefined;
}

/**
 * Checks the owner of a database and creates the schema in an empty one, all in one transaction under
 * a lock, so that of gateways that start together only the first creates it. Throws the driver's errors, and
 * `UnusableDatabase`; then the end of the connection rolls back.
 */
export async function prepareDatabase(
  client: ClientBase,
  settings: PrepareSettings,
): Promise<void> {
  const { name, isCreating, owner } = settings;
  await client.query(beginIn("schema"));
  const facts = await readFacts(client, name);
  if (facts.state === "empty" && !isCreating) {
    throw new WrongDatabase(name, "is empty now", "Please put it back in place.");
  }
  owner?.check(facts);
  const found = await readVersion(client);
  refuseOtherSchema({ name, version: found });
  if (found === 0) await createSchema(client);
  if (owner !== undefined) await claimDatabase(client, facts, owner);
  await client.query("COMMIT");
}

/** For as long as it takes: other statements of the connection have a time-out. */
async function createSchema(client: ClientBase): Promise<void> {
  const statements = { text: schema, query_timeout: longestTimerMs };
  await client.query(statements);
  await client.query("INSERT INTO schema_version VALUES (1, $1)", [schemaVersion]);
}

/** 0: it is empty. */
export async function readVersion(client: ClientBase): Promise<number> {
  if (!(await hasTable(client, "schema_version"))) return 0;
  const { rows } = await client.query<{ version: number }>("SELECT version FROM schema_version");
  return rows[0]?.version ?? 0;
}
