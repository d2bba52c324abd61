import type { ClientBase } from "pg";
import type { DatabaseFacts, DatabaseOwner } from "../../installation.ts";

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
