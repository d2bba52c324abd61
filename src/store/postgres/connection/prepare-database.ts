import type { ClientBase } from "pg";
import { type DatabaseFacts, type DatabaseOwner, factsOfNone } from "../../store.ts";
import { WrongDatabase } from "../../errors.ts";
import { refuseOtherSchema, schemaVersion } from "../../repositories/schema.ts";
import { beginIn } from "./lanes.ts";
import { schema } from "../schema.ts";

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
  refuseOtherSchema(facts);
  if (facts.version === 0) {
    await client.query(schema);
    await client.query("INSERT INTO schema_version VALUES (1, $1)", [schemaVersion]);
  }
  if (owner !== undefined) await claimDatabase(client, facts, owner);
  await client.query("COMMIT");
}

interface OwnerRow {
  readonly version: number;
  readonly id: string | null;
  readonly mark: string | null;
}

/** Reads what identifies the owner of a database of any version, without changing it. */
export async function readFacts(client: ClientBase, path: string): Promise<DatabaseFacts> {
  const found = await client.query<{ found: boolean }>(
    "SELECT to_regclass('schema_version') IS NOT NULL AS found",
  );
  if (found.rows[0]?.found !== true) return factsOfNone(path, "empty");
  const { rows } = await client.query<OwnerRow>(`
    SELECT version, id, pepper_mark AS mark FROM schema_version LEFT JOIN installation ON true`);
  const [row] = rows;
  return {
    path,
    state: "filled",
    version: row?.version ?? 0,
    installation: row?.id ?? undefined,
    pepperMark: row?.mark ?? undefined,
  };
}

/** Marks a database as its owner's, unless it already is. Needs the lock of the schema. */
async function claimDatabase(
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
