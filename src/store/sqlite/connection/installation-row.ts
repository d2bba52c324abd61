import type { Database } from "bun:sqlite";
import type { DatabaseClaim, DatabaseFacts, DatabaseOwner } from "../../installation.ts";

interface ClaimRow {
  readonly id: string;
  readonly pepper_mark: string | null;
}

export function noDatabase(path: string): DatabaseFacts {
  const unknown = { installation: undefined, pepperMark: undefined, hasSecrets: false };
  return { path, state: "missing", ...unknown };
}

/** Reads what identifies the owner of a database of any version, without changing it. */
export function readFacts(database: Database, path: string): DatabaseFacts {
  const tables = tablesOf(database);
  const claim = tables.has("installation") ? readClaim(database) : null;
  return {
    path,
    state: tables.size === 0 ? "empty" : "filled",
    installation: claim?.id,
    pepperMark: claim?.pepper_mark ?? undefined,
    hasSecrets: tables.has("secrets") && hasSecrets(database),
  };
}

/** Marks a database as its owner's, unless it already is. */
export function claimDatabase(
  database: Database,
  facts: DatabaseFacts,
  owner: DatabaseOwner,
): void {
  if (facts.pepperMark !== undefined && owner.claim(facts).pepperMark === facts.pepperMark) return;
  // Another process may do the same at the same time, so this checks again.
  database
    .transaction(() => {
      const latest = readFacts(database, facts.path);
      owner.check(latest);
      writeClaim(database, owner.claim(latest));
    })
    .immediate();
}

/** `pepper_since` is null for the very first pepper. */
function writeClaim(database: Database, { installation, pepperMark, at }: DatabaseClaim): void {
  database
    .query<unknown, [string, string, number]>(
      `REPLACE INTO installation (place, id, pepper_mark, pepper_since)
       VALUES (1, ?, ?, iif(EXISTS (SELECT 1 FROM installation WHERE pepper_mark NOT NULL), ?, NULL))`,
    )
    .run(installation, pepperMark, at);
}

/** Clears the mark of the pepper, so that the next owner's is accepted. */
export function forgetPepper(database: Database): void {
  database.run("UPDATE installation SET pepper_mark = NULL");
}

function tablesOf(database: Database): ReadonlySet<string> {
  const rows = database
    .query<{ name: string }, []>("SELECT name FROM sqlite_schema WHERE type = 'table'")
    .all();
  return new Set(rows.map(({ name }) => name));
}

function readClaim(database: Database): ClaimRow | null {
  return database.query<ClaimRow, []>("SELECT id, pepper_mark FROM installation").get();
}

function hasSecrets(database: Database): boolean {
  return database.query("SELECT 1 FROM secrets LIMIT 1").get() !== null;
}
