import { Database } from "bun:sqlite";
import { existsSync } from "node:fs";
import type { AuditSeals } from "../../../domain/audit/audit-seals.ts";
import { SchemaTooNew, WrongDatabase } from "../../errors.ts";
import type { DatabaseFacts, DatabaseOwner } from "../../installation.ts";
import { AuditEnds } from "../../repositories/audit/audit-ends.ts";
import { claimDatabase, noDatabase, readFacts } from "./installation-row.ts";
import { migrations, versionWithSeals } from "./migrations.ts";
import { inSession } from "./session.ts";
import { beginChange, beginSnapshot, undo } from "./transaction.ts";

// Bun keeps 20 statements prepared by default, the first 20 for ever, and prepares all others anew
// at each use. There are some hundred in all: filters alone make several of one.
Database.MAX_QUERY_CACHE_SIZE = 500;

export interface OpenSettings {
  /** Longest wait of one statement for another process; it holds up everything else meanwhile. */
  readonly busyTimeoutMs: number;
  /** Whether a database is made where there is none, or an empty one. */
  readonly isCreating: boolean;
  /** Without one, any database will do. */
  readonly owner?: DatabaseOwner | undefined;
  /** What the audit is sealed with. */
  readonly seals?: AuditSeals | undefined;
}

/**
 * Opens a database and brings its schema up to date. `path` is a file or `:memory:`. Throws
 * SQLite's errors, and `UnusableDatabase`.
 */
export async function openDatabase(path: string, settings: OpenSettings): Promise<Database> {
  const { busyTimeoutMs, isCreating, owner, seals } = settings;
  // SQLite would make the file first.
  if (isCreating && !existsSync(path)) owner?.check(noDatabase(path));
  const database = new Database(path, { create: isCreating, readwrite: true, strict: true });
  try {
    database.run(`PRAGMA busy_timeout = ${busyTimeoutMs}`);
    const facts = readFacts(database, path);
    if (facts.state === "empty" && !isCreating) throw emptied(path);
    owner?.check(facts);
    database.run("PRAGMA journal_mode = WAL");
    // Keys and usage must survive a power cut; batches make the price of it small.
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

/** Reads whose a database is, and changes nothing. Throws SQLite's errors. */
export function inspectDatabase(path: string): DatabaseFacts {
  if (!existsSync(path)) return noDatabase(path);
  using database = new Database(path, { readonly: true });
  return readFacts(database, path);
}

function emptied(path: string): WrongDatabase {
  return new WrongDatabase(path, "is empty now", "Please put it back in place.");
}

async function migrate(
  database: Database,
  path: string,
  seals: AuditSeals | undefined,
): Promise<void> {
  // A database that is up to date can be opened while it is locked or read-only.
  if (readVersion(database) === migrations.length) return;
  // Immediate: two processes that start together must not both apply a step.
  await inTransaction(database, beginChange, async () => {
    const done = readVersion(database);
    if (done > migrations.length) {
      throw new SchemaTooNew(
        `the database ${path} was written by a newer version of Sluice: ` +
          `its schema is ${done}, this version knows ${migrations.length}`,
      );
    }
    for (const step of migrations.slice(done)) database.run(step);
    // Here alone: later, a chain without a seal is one that somebody took the seal from.
    if (done < versionWithSeals && seals !== undefined) {
      await inSession(database, (queries) => new AuditEnds(queries, seals).sealAll());
    }
    database.run(`PRAGMA user_version = ${migrations.length}`);
  });
}

/** The connection is not in use yet: nothing but `work` can get into the transaction. */
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

function readVersion(database: Database): number {
  const row = database.query<{ user_version: number }, []>("PRAGMA user_version").get();
  return row?.user_version ?? 0;
}
