import type { Database } from "bun:sqlite";

/** A transaction sees one state from its first reading on; it is that which may find a lock. */
export function beginSnapshot(database: Database): void {
  database.run("BEGIN");
  try {
    database.query("SELECT 1 FROM sqlite_schema LIMIT 1").get();
  } catch (error) {
    undo(database);
    throw error;
  }
}

/** Immediate: no other process writes from here on, so that no later statement finds a lock. */
export function beginChange(database: Database): void {
  database.run("BEGIN IMMEDIATE");
}

export function undo(database: Database): void {
  try {
    if (database.inTransaction) database.run("ROLLBACK");
  } catch {
    // A connection that cannot even undo is one that is dropped.
  }
}
