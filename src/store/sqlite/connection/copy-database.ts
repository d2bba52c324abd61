import { Database } from "bun:sqlite";
import { migrations } from "./migrations.ts";

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

/** The version of a database's schema, and the newest one that this program knows. */
export function schemaOf(path: string): { readonly version: number; readonly newest: number } {
  using database = new Database(path, { readonly: true });
  const row = database.query<{ user_version: number }, []>("PRAGMA user_version").get();
  return { version: row?.user_version ?? 0, newest: migrations.length };
}
