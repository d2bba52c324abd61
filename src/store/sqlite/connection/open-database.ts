import { Database } from "bun:sqlite";
import { existsSync } from "node:fs";
import type { AuditSeals } from "../../../domain/audit/audit-seals.ts";
import { progressTable } from "../../repositories/copy/copy-place.ts";
import { UnfinishedCopy, WrongDatabase } from "../../errors.ts";
import type { DatabaseFacts, DatabaseOwner } from "../../installation.ts";
import { AuditEnds } from "../../repositories/audit/audit-ends.ts";
import { newestSchema, noSchema, stepsToRun } from "../../schema-version.ts";
import { claimDatabase, noDatabase, readFacts } from "./installation-row.ts";
import { migrations, versionWithSeals } from "./migrations.ts";
import { readSchema, writeSchema } from "./schema-row.ts";
import { inSession } from "./session.ts";
import { beginChange, beginSnapshot, undo } from "./transaction.ts";

// By default, Bun keeps the first 20 statements prepared and prepares all others at each use. There
// are over a hundred, because filters make several out of one.
Database.MAX_QUERY_CACHE_SIZE = 500;

export interface OpenSettings {
  /** Longest wait of one statement for another process, which blocks everything else. */
  readonly busyTimeoutMs: number;
  /** Whether to create a missing or empty database. */
  readonly isCreating: boolean;
  /** Whether to bring an older schema up to date. Default true. */
  readonly migrates?: boolean | undefined;
  /** Whether the copy of another database may be unfinished. */
  readonly mayBeCopy?: boolean;
  /** Undefined: any database is accepted. */
  readonly owner?: DatabaseOwner | undefined;
  readonly seals?: AuditSeals | undefined;
}

/**
 * Opens a database and brings its schema up to date. `path` is a file or `:memory:`. Throws
 * SQLite's errors, and `UnusableDatabase`.
 */
export async function openDatabase(path: string, settings: OpenSettings): Promise<Database> {
  const { busyTimeoutMs, isCreating, owner, seals, migrates = true } = settings;
  // SQLite would create the file first.
  if (isCreating && !existsSync(path)) {
    owner?.check(noDatabase(path));
    stepsToRun({ name: path, found: noSchema, migrations }, migrates);
  }
  const database = new Database(path, { create: isCreating, readwrite: true, strict: true });
  try {
    database.run(`PRAGMA busy_timeout = ${busyTimeoutMs}`);
    const facts = readFacts(database, path);
    if (facts.state === "empty" && !isCreating) throw emptied(path);
    if (settings.mayBeCopy !== true && isCopy(database)) throw new UnfinishedCopy(path);
    owner?.check(facts);
    if (!migrates) lackingSteps(database, { path, migrates });
    database.run("PRAGMA journal_mode = WAL");
    // Keys and usage must survive a power cut; batches make that cheap.
    database.run("PRAGMA synchronous = FULL");
    database.run("PRAGMA foreign_keys = ON");
    await migrate(database, path, seals);
    if (owner !== undefined) claimDatabase(database, facts, owner);
    if (seals !== undefined) {
      await inTransaction(database, beginSnapshot, () =>
        inSession(database, (queries) => new AuditEnds(queries, seals).renewSeals()),
      );
    }
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/** Reads what identifies the owner of a database, without changing it. Throws SQLite's errors. */
export function inspectDatabase(path: string): DatabaseFacts {
  if (!existsSync(path)) return noDatabase(path);
  using database = new Database(path, { readonly: true });
  return readFacts(database, path);
}

/** Whether a copy into the database was interrupted. */
export function isCopy(database: Database): boolean {
  const tables = database.query<unknown, [string]>("SELECT 1 FROM sqlite_schema WHERE name = ?");
  return tables.get(progressTable) !== null;
}

function emptied(path: string): WrongDatabase {
  return new WrongDatabase(path, "is empty now", "Please put it back in place.");
}

async function migrate(
  database: Database,
  path: string,
  seals: AuditSeals | undefined,
): Promise<void> {
  // An up-to-date database can be opened while it is locked or read-only.
  if (lackingSteps(database, { path, migrates: true }).length === 0) return;
  // Immediate, so that two processes that start together do not both apply a step.
  await inTransaction(database, beginChange, async () => {
    const done = readSchema(database).version;
    const lacking = lackingSteps(database, { path, migrates: true });
    if (lacking.length === 0) return;
    for (const { sql } of lacking) database.run(sql);
    // Only at this step: in later versions, a chain without a seal means that the seal was removed.
    if (done < versionWithSeals && seals !== undefined) {
      await inSession(database, (queries) => new AuditEnds(queries, seals).sealAll());
    }
    writeSchema(database, newestSchema(migrations));
  });
}

/** Throws `SchemaTooNew` and `SchemaTooOld`. */
function lackingSteps(
  database: Database,
  { path, migrates }: { readonly path: string; readonly migrates: boolean },
) {
  return stepsToRun({ name: path, found: readSchema(database), migrations }, migrates);
}

/** The connection is not shared yet, so only `work` can be in the transaction. */
async function inTransaction(
  database: Database,
  begin: (database: Database) => void,
  work: () => Promise<void>,
): Promise<void> {
  begin(database);
  try {
    await work();
    database.run("COMMIT");
  } catch (error) {
    undo(database);
    throw error;
  }
}
