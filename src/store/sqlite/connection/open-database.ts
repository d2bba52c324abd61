import { Database } from "bun:sqlite";
import { existsSync } from "node:fs";
import type { AuditSeals } from "../../../domain/audit/audit-seals.ts";
import { progressTable } from "../../repositories/copy/copy-place.ts";
import { UnfinishedCopy, WrongDatabase } from "../../errors.ts";
import type { DatabaseFacts, DatabaseOwner } from "../../installation.ts";
import { AuditEnds } from "../../repositories/audit/audit-ends.ts";
import { refuseOtherSchema, schemaVersion } from "../../schema-version.ts";
import { schema } from "../schema.ts";
import { claimDatabase, noDatabase, readFacts } from "./installation-row.ts";
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
  /** Whether the copy of another database may be unfinished. */
  readonly mayBeCopy?: boolean;
  /** Undefined: any database is accepted. */
  readonly owner?: DatabaseOwner | undefined;
  readonly seals?: AuditSeals | undefined;
}

/**
 * Opens a database, and creates its schema in an empty one. `path` is a file or `:memory:`. Throws
 * SQLite's errors, and `UnusableDatabase`.
 */
export async function openDatabase(path: string, settings: OpenSettings): Promise<Database> {
  const { busyTimeoutMs, isCreating, owner, seals } = settings;
  // SQLite would create the file first.
  if (isCreating && !existsSync(path)) owner?.check(noDatabase(path));
  const database = new Database(path, { create: isCreating, readwrite: true, strict: true });
  try {
    database.run(`PRAGMA busy_timeout = ${busyTimeoutMs}`);
    const facts = readFacts(database, path);
    if (facts.state === "empty" && !isCreating) throw emptied(path);
    if (settings.mayBeCopy !== true && isCopy(database)) throw new UnfinishedCopy(path);
    owner?.check(facts);
    refuseOtherSchema({ name: path, version: readVersion(database) });
    database.run("PRAGMA journal_mode = WAL");
    // Keys and usage must survive a power cut; batches make that cheap.
    database.run("PRAGMA synchronous = FULL");
    database.run("PRAGMA foreign_keys = ON");
    if (readVersion(database) === 0) await createSchema(database, seals);
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

/** 0: it is empty. */
export function readVersion(database: Database): number {
  const row = database.query<{ user_version: number }, []>("PRAGMA user_version").get();
  return row?.user_version ?? 0;
}

/** Immediate, so that of processes that start together only the first creates it. */
function createSchema(database: Database, seals: AuditSeals | undefined): Promise<void> {
  return inTransaction(database, beginChange, async () => {
    if (readVersion(database) !== 0) return;
    database.run(schema);
    if (seals !== undefined) {
      await inSession(database, (queries) => new AuditEnds(queries, seals).sealAll());
    }
    database.run(`PRAGMA user_version = ${schemaVersion}`);
  });
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
