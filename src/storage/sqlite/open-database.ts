import { Database } from "bun:sqlite";
import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { migrations } from "./migrations.ts";

/** How long opening waits for another process that is writing. */
const openTimeoutMs = 5_000;

/**
 * Opens a database and brings its schema up to date. `path` is a file or `:memory:`. A statement
 * waits at most `busyTimeoutMs` for another process that is writing, and holds up everything else
 * meanwhile. Throws when the file cannot be used or was written by a newer version.
 */
export function openDatabase(path: string, busyTimeoutMs = openTimeoutMs): Database {
  try {
    return open(path, busyTimeoutMs);
  } catch (error) {
    throw new Error(`the database ${path} cannot be opened`, { cause: error });
  }
}

function open(path: string, busyTimeoutMs: number): Database {
  if (path !== ":memory:") mkdirSync(dirname(path), { recursive: true });
  const database = new Database(path, { create: true, strict: true });
  database.run(`PRAGMA busy_timeout = ${openTimeoutMs}`);
  database.run("PRAGMA journal_mode = WAL");
  // Keys and usage must survive a power cut; batches make the price of it small.
  database.run("PRAGMA synchronous = FULL");
  database.run("PRAGMA foreign_keys = ON");
  migrate(database, path);
  database.run(`PRAGMA busy_timeout = ${busyTimeoutMs}`);
  return database;
}

function migrate(database: Database, path: string): void {
  // Immediate: two processes that start together must not both apply a step.
  database
    .transaction(() => {
      const done = readVersion(database);
      if (done > migrations.length) {
        throw new Error(`${path} was written by a newer version of Sluice (schema ${done})`);
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
