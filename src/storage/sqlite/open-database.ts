import { Database } from "bun:sqlite";
import { SchemaTooNew } from "../errors.ts";
import { migrations } from "./migrations.ts";

export interface OpenSettings {
  /** Longest wait of one statement for another process; it holds up everything else meanwhile. */
  readonly busyTimeoutMs: number;
  /** Whether a file that is not there is made. */
  readonly isCreating: boolean;
}

/**
 * Opens a database and brings its schema up to date. `path` is a file or `:memory:`. Throws
 * SQLite's errors, and `SchemaTooNew`.
 */
export function openDatabase(path: string, settings: OpenSettings): Database {
  const { busyTimeoutMs, isCreating } = settings;
  const database = new Database(path, { create: isCreating, readwrite: true, strict: true });
  try {
    database.run(`PRAGMA busy_timeout = ${busyTimeoutMs}`);
    database.run("PRAGMA journal_mode = WAL");
    // Keys and usage must survive a power cut; batches make the price of it small.
    database.run("PRAGMA synchronous = FULL");
    database.run("PRAGMA foreign_keys = ON");
    migrate(database, path);
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

function migrate(database: Database, path: string): void {
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
      database.run(`PRAGMA user_version = ${migrations.length}`);
    })
    .immediate();
}

function readVersion(database: Database): number {
  const row = database.query<{ user_version: number }, []>("PRAGMA user_version").get();
  return row?.user_version ?? 0;
}
