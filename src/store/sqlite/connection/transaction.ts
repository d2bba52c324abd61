import type { Database } from "bun:sqlite";

/**
 * Begins a transaction that sees one state from its first read on; only that read can find a lock.
 */
export function beginSnapshot(database: Database): void {
  database.run("BEGIN");
  try {
    database.query("SELECT 1 FROM sqlite_schema LIMIT 1").get();
  } catch (error) {
    undo(database);
    throw error;
  }
}

/** Immediate, so that no other process writes and no later statement finds a lock. */
export function beginChange(database: Database): void {
  database.run("BEGIN IMMEDIATE");
}

export function undo(database: Database): void {
  try {
    if (database.inTransaction) database.run("ROLLBACK");
  } catch {
    // A connection that cannot roll back is dropped anyway.
  }
}
