import type { ClientBase } from "pg";
import type { AuditSeals } from "../../../domain/audit/audit-seals.ts";
import { progressTable } from "../../repositories/copy/copy-place.ts";
import { UnfinishedCopy, WrongDatabase } from "../../errors.ts";
import type { DatabaseOwner } from "../../installation.ts";
import { AuditEnds } from "../../repositories/audit/audit-ends.ts";
import { newestSchema, noSchema, stepsToRun, type SchemaVersion } from "../../schema-version.ts";
import { claimDatabase, hasTable, readFacts } from "./installation-row.ts";
import { beginIn, lockOf } from "./lanes.ts";
import { migrations } from "./migrations.ts";
import { inSession } from "./session.ts";

/** The driver takes 0 for the time-out of the connection. */
const longestTimerMs = 2 ** 31 - 1;

export interface PrepareSettings {
  /** The URL without its password. */
  readonly name: string;
  /** Whether to create the schema in an empty database. */
  readonly isCreating: boolean;
  /** Whether to bring an older schema up to date. */
  readonly migrates: boolean;
  /** Whether the copy of another database may be unfinished. */
  readonly mayBeCopy?: boolean;
  readonly owner: DatabaseOwner | undefined;
  readonly seals: AuditSeals | undefined;
}

/**
 * Checks the owner of a database and brings its schema up to date, all in one transaction under a
 * lock, so that gateways that start together apply each step once. Throws the driver's errors, and
 * `UnusableDatabase`; then the end of the connection rolls back.
 */
export async function prepareDatabase(
  client: ClientBase,
  settings: PrepareSettings,
): Promise<void> {
  const { name, isCreating, migrates, owner, seals } = settings;
  await client.query(beginIn("schema"));
  const facts = await readFacts(client, name);
  if (facts.state === "empty" && !isCreating) {
    throw new WrongDatabase(name, "is empty now", "Please put it back in place.");
  }
  if (settings.mayBeCopy !== true && (await hasTable(client, progressTable))) {
    throw new UnfinishedCopy(name);
  }
  owner?.check(facts);
  const done = await migrate(client, name, migrates);
  if (owner !== undefined) await claimDatabase(client, facts, owner);
  if (seals !== undefined) {
    // Gateways that run write the ends of the audit in this lane.
    await client.query(lockOf("entities"));
    await inSession(client, (queries) => {
      const ends = new AuditEnds(queries, seals);
      return done === 0 ? ends.sealAll() : ends.renewSeals();
    });
  }
  await client.query("COMMIT");
}

/** Returns how many steps the database had. */
async function migrate(client: ClientBase, name: string, mayRun: boolean): Promise<number> {
  const found = await readSchema(client);
  const due = stepsToRun({ name, found, migrations }, mayRun);
  if (due.length === 0) return found.version;
  for (const { sql } of due) await runStep(client, sql);
  const { version, compatibleSince } = newestSchema(migrations);
  const update = "UPDATE schema_version SET version = $1, compatible_since = $2";
  await client.query(update, [version, compatibleSince]);
  return found.version;
}

/** For as long as it takes: other statements of the connection have a time-out. */
async function runStep(client: ClientBase, step: string): Promise<void> {
  const statements = { text: step, query_timeout: longestTimerMs };
  await client.query(statements);
}

/** The schema of a database of any version. */
export async function readSchema(client: ClientBase): Promise<SchemaVersion> {
  if (!(await hasTable(client, "schema_version"))) return noSchema;
  const { rows } = await client.query<SchemaVersion>(
    `SELECT version, coalesce((to_jsonb(stored) ->> 'compatible_since')::bigint, version)
       AS "compatibleSince" FROM schema_version AS stored`,
  );
  return rows[0] ?? noSchema;
}
