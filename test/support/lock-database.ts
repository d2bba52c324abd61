import { Database } from "bun:sqlite";

/** Longer than another process holds the lock. */
const patienceMs = 60_000;

/** Locks a database of another process against writers, until the connection is closed. */
export function lockDatabase(path: string): Database {
  const database = new Database(path);
  database.run(`PRAGMA busy_timeout = ${patienceMs}`);
  database.run("BEGIN IMMEDIATE");
  return database;
}
