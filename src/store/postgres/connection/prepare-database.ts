import type { ClientBase } from "pg";
import type { DatabaseFacts, DatabaseOwner } from "../../store.ts";
import { WrongDatabase } from "../../errors.ts";
import { refuseOtherSchema, schemaVersion } from "../../schema-version.ts";
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
 * a lock, so that of processes that start together only the first creates it. Throws the driver's errors, and
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

interface ClaimRow {
  readonly id: string;
  readonly pepper_mark: string | null;
}

/** Reads what identifies the owner of a database of any version, without changing it. */
export async function readFacts(client: ClientBase, path: string): Promise<DatabaseFacts> {
  if (!(await hasTable(client, "schema_version"))) {
    const unknown = { installation: undefined, pepperMark: undefined, hasSecrets: false };
    return { path, state: "empty", ...unknown };
  }
  const claims = await client.query<ClaimRow>("SELECT id, pepper_mark FROM installation");
  const [claim] = claims.rows;
  const secrets = await client.query("SELECT 1 FROM secrets LIMIT 1");
  return {
    path,
    state: "filled",
    installation: claim?.id,
    pepperMark: claim?.pepper_mark ?? undefined,
    hasSecrets: secrets.rows.length > 0,
  };
}

/** Marks a database as its owner's, unless it already is. Needs the lock of the schema. */
export async function claimDatabase(
  client: ClientBase,
  facts: DatabaseFacts,
  owner: DatabaseOwner,
): Promise<void> {
  const { installation, pepperMark, at } = owner.claim(facts);
  if (facts.pepperMark === pepperMark) return;
  // `pepper_since` is null for the very first pepper.
  await client.query(
    `INSERT INTO installation (place, id, pepper_mark, pepper_since) VALUES (1, $1, $2, NULL)
     ON CONFLICT (place) DO UPDATE SET id = excluded.id, pepper_mark = excluded.pepper_mark,
       pepper_since = CASE WHEN installation.pepper_mark IS NOT NULL THEN $3::bigint END`,
    [installation, pepperMark, at],
  );
}

export async function hasTable(client: ClientBase, table: string): Promise<boolean> {
  const sql = "SELECT to_regclass($1) IS NOT NULL AS found";
  const { rows } = await client.query<{ found: boolean }>(sql, [table]);
  return rows[0]?.found === true;
}
