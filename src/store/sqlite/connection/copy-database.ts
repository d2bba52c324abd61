import { Database } from "bun:sqlite";

/** How long the copy waits for a process that has locked the database. */
const busyTimeoutMs = 10_000;

/**
 * Copies a database as it is at one moment, while others read and write it. The target must not
 * exist. Throws SQLite's errors, also for a damaged database.
 */
export function copyDatabase(path: string, target: string): void {
  using database = new Database(path, { readonly: true });
  database.run(`PRAGMA busy_timeout = ${busyTimeoutMs}`);
  database.query<unknown, [string]>("VACUUM INTO ?").run(target);
}
