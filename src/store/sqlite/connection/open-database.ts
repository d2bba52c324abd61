import { Database } from "bun:sqlite";
import { existsSync } from "node:fs";
import type { AuditSeals } from "../../../domain/audit/audit-seals.ts";
import { SchemaTooNew, WrongDatabase } from "../../errors.ts";
import type { DatabaseFacts, DatabaseOwner } from "../../installation.ts";
import { renewSeals, sealAudit } from "../audit-ends.ts";
import { claimDatabase, noDatabase, readFacts } from "./installation-row.ts";
import { migrations, versionWithSeals } from "./migrations.ts";

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
export function openDatabase(path: string, settings: OpenSettings): Database {
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
    migrate(database, path, seals);
    if (owner !== undefined) claimDatabase(database, facts, owner);
    if (seals !== undefined) database.transaction(() => renewSeals(database, seals))();
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

function migrate(database: Database, path: string, seals: AuditSeals | undefined): void {
  // A database that is up to date can be opened while it is locked or read-only.
  if (readVersion(database) === migrations.length) return;
  // Immediate: two processes that start together must not both apply a step.
  database
    .transaction(() => {
      const done = readVersion(database);
      if (done > migrations.length) {
        throw new SchemaTooNew(
          `the database ${path} was written by a newer version of Sluice: ` +
            `its schema is ${done}, this version knows ${migrations.length}`,
        );
      }
      for (const step of migrations.slice(done)) database.run(step);
      // Here alone: later, a chain without a seal is one that somebody took the seal from.
      if (done < versionWithSeals && seals !== undefined) sealAudit(database, seals);
      database.run(`PRAGMA user_version = ${migrations.length}`);
    })
    .immediate();
}

function readVersion(database: Database): number {
  const row = database.query<{ user_version: number }, []>("PRAGMA user_version").get();
  return row?.user_version ?? 0;
}
