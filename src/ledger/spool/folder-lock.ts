import { Database } from "bun:sqlite";
import { join } from "node:path";
import type { Clock } from "../../domain/clock.ts";
import { errorCode } from "../../domain/system-files.ts";

/** Another process holds the lock. */
export class FolderInUse extends Error {}

const retryIntervalMs = 250;

/** Locks a folder while this process lives: the system releases a SQLite lock however it ends. */
export class FolderLock {
  readonly folder: string;
  readonly path: string;
  readonly #database: Database;
  #isTaken = false;

  /** Opens the lock's file without taking the lock. Throws when it is not writable. */
  constructor(folder: string, name = "lock") {
    this.folder = folder;
    this.path = join(folder, name);
    this.#database = openLock(this.path);
    this.#database.run("PRAGMA busy_timeout = 0");
  }

  get isTaken(): boolean {
    return this.#isTaken;
  }

  /** False while another process holds it; may be repeated. Throws other errors. */
  take(): boolean {
    try {
      // Nothing is written, so this works on a full disk.
      this.#database.run("PRAGMA journal_mode = MEMORY");
      this.#database.run("BEGIN EXCLUSIVE");
      this.#isTaken = true;
      return true;
    } catch (error) {
      if (errorCode(error) === "SQLITE_BUSY") return false;
      throw unusable(this.path, error);
    }
  }

  /** Throws `FolderInUse` if another process holds it for all of the time. */
  async takeWithin(longestMs: number, clock: Pick<Clock, "schedule">): Promise<void> {
    for (let waitedMs = 0; !this.take(); waitedMs += retryIntervalMs) {
      if (waitedMs >= longestMs) throw new FolderInUse("another gateway leads this machine");
      await new Promise<void>((resolve) => clock.schedule(resolve, retryIntervalMs));
    }
  }

  /** Closes the file, whether the lock was taken or not. */
  release(): void {
    this.#database.close();
  }
}

/** The lock in a data directory of the process that leads its machine. */
export const leaderLock = "leader.lock";

function openLock(path: string): Database {
  try {
    return new Database(path, { create: true });
  } catch (error) {
    throw unusable(path, error);
  }
}

/** The errors of SQLite name no file. */
function unusable(path: string, error: unknown): Error {
  const reason = error instanceof Error ? error.message : String(error);
  return new Error(`${path} cannot be locked (${reason}); is it the file of another user?`);
}
