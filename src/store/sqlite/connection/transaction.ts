import type { Database } from "bun:sqlite";

/** A transaction sees one state from its first read on, and only that read can meet a lock. */
export function beginSnapshot(database: Database): void {
  database.run("BEGIN");
  try {
    database.query("SELECT 1 FROM sqlite_schema LIMIT 1").get();
  } catch (error) {
    undo(database);
    throw error;
  }
}

/** Immediate, so that no other process writes and no later statement meets a lock. */
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
