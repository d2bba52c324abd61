import { Database } from "bun:sqlite";
import { join } from "node:path";

/**
 * Keeps every other process away from a folder, for as long as this one lives: the system frees
 * what SQLite locks when a process ends, however it ends.
 */
export class FolderLock {
  readonly #database: Database;

  /** Throws when another holds the folder, or when nothing can be written there. */
  constructor(folder: string) {
    this.#database = new Database(join(folder, "lock"), { create: true });
    try {
      this.#database.run("PRAGMA busy_timeout = 0");
      // Nothing is written, so a full disk is no hindrance.
      this.#database.run("PRAGMA journal_mode = MEMORY");
      this.#database.run("BEGIN EXCLUSIVE");
    } catch (error) {
      this.#database.close();
      if (!isBusy(error)) throw error;
      throw new Error(`another process uses the spool in ${folder}`, { cause: error });
    }
  }

  release(): void {
    this.#database.close();
  }
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "SQLITE_BUSY";
}
