import type { Database } from "bun:sqlite";
import { mkdirSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { StorageUnavailable, UnusableDatabase } from "../../errors.ts";
import type { DatabaseOwner } from "../../store.ts";
import { openDatabase } from "./open-database.ts";
import { beginChange, beginSnapshot, inSession, undo } from "./session.ts";
import { DatabaseState, type StateOptions } from "../../repositories/database-state.ts";
import type { Queries, SqlConnection } from "../../repositories/tables.ts";
import { troubleOf } from "./sqlite-trouble.ts";

export interface SqliteOptions extends StateOptions {
  /** A file, or `:memory:`. */
  readonly path: string;
  /** Longest wait of one statement for another process, which blocks the event loop. */
  readonly busyTimeoutMs: number;
  /** Longest total wait for other processes, which does not block the event loop. Default 2000. */
  readonly lockWaitMs?: number | undefined;
  /** Checks that the database is the right one; not used in memory. */
  readonly owner?: DatabaseOwner | undefined;
}

const retryMs = 20;

/**
 * The one connection of a process to its database. Opens it on first use, and again after a failure
 * that may have been repaired. Steps and transactions run one at a time, in order of arrival.
 */
export class SqliteConnection implements SqlConnection {
  readonly #options: SqliteOptions;
  readonly #state: DatabaseState;
  readonly #lockWaitMs: number;
  /** Undefined in memory. */
  readonly #file: string | undefined;
  #database: Database | undefined;
  /** The file when it was opened. */
  #opened: FileState | undefined;
  /** A damaged file, which is not opened again until another one takes its place. */
  #broken: { readonly what: string; readonly file: FileState } | undefined;
  #last: Promise<unknown> = Promise.resolve();
  #isClosed = false;
  #wasOpened = false;
  #openedAt = -Infinity;
  /** Whether a new connection may change what this one can only read. */
  #isStale = false;

  constructor(options: SqliteOptions) {
    this.#options = options;
    this.#state = new DatabaseState(options.path, options);
    this.#lockWaitMs = options.lockWaitMs ?? 2_000;
    this.#file = options.path === ":memory:" ? undefined : options.path;
  }

  /** The damage of the file, if only a different file would help. */
  get needsRestore(): string | undefined {
    return this.#broken?.what;
  }

  /** Opens the database now. Throws `StorageUnavailable`, which includes `UnusableDatabase`. */
  open(): Promise<void> {
    return this.use(() => undefined);
  }

  /**
   * Runs a synchronous step, and runs it again if another process was writing: more than one change
   * belongs in `transact`. Throws `StorageUnavailable`.
   */
  use<Result>(step: (database: Database) => Result): Promise<Result> {
    return this.#inTurn(async (waitedMs) => {
      const result = await this.#retry(waitedMs, step);
      this.#worked(false);
      return result;
    });
  }

  read<Result>(work: (queries: Queries) => Promise<Result>): Promise<Result> {
    return this.#inTransaction(beginSnapshot, false, (database) => inSession(database, work));
  }

  change<Result>(work: (queries: Queries) => Promise<Result>): Promise<Result> {
    return this.transact((database) => inSession(database, work));
  }

  /**
   * Runs a transaction; an error thrown by `work` rolls back. `work` must use only the database it
   * is given, never this connection, and await nothing else. Throws `StorageUnavailable`.
   */
  transact<Result>(work: (database: Database) => Promise<Result>): Promise<Result> {
    return this.#inTransaction(beginChange, true, work);
  }

  /** There is one lane. */
  inLane(): SqlConnection {
    return this;
  }

  /** Waits for the queue; everything later fails. */
  close(): Promise<void> {
    return this.#chain(() => {
      this.#isClosed = true;
      this.#drop();
      return Promise.resolve();
    });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #inTransaction<Result>(
    begin: (database: Database) => void,
    isChange: boolean,
    work: (database: Database) => Promise<Result>,
  ): Promise<Result> {
    return this.#inTurn(async (waitedMs) => {
      const database = await this.#retry(waitedMs, (ready) => {
        begin(ready);
        return ready;
      });
      try {
        const result = await work(database);
        // SQLite may have rolled back by itself, for example because the disk is full.
        if (!database.inTransaction) {
          throw new StorageUnavailable("the transaction was rolled back");
        }
        database.run("COMMIT");
        this.#worked(isChange);
        return result;
      } catch (error) {
        undo(database);
        throw this.#readFailure(error);
      }
    });
  }

  /** Passes to `task` how long it was queued. */
  #inTurn<Result>(task: (waitedMs: number) => Promise<Result>): Promise<Result> {
    const { clock } = this.#state;
    const askedAt = clock.monotonic();
    return this.#state.counted(() => this.#chain(() => task(clock.monotonic() - askedAt)));
  }

  #chain<Result>(task: () => Promise<Result>): Promise<Result> {
    const result = this.#last.then(task);
    this.#last = result.catch(() => undefined);
    return result;
  }

  /** Retries without blocking the event loop while others write, up to the total wait. */
  async #retry<Result>(
    waitedBeforeMs: number,
    step: (database: Database) => Result,
  ): Promise<Result> {
    for (let waitedMs = waitedBeforeMs; ; waitedMs += retryMs + this.#options.busyTimeoutMs) {
      try {
        return step(this.#acquire());
      } catch (error) {
        const isLocked = troubleOf(error)?.cure === "wait";
        if (!isLocked || waitedMs >= this.#lockWaitMs) throw this.#readFailure(error);
      }
      await Bun.sleep(retryMs);
    }
  }

  #acquire(): Database {
    if (this.#isClosed) throw new StorageUnavailable("the database was closed");
    if (this.#isLost()) this.#drop();
    else if (this.#isStale && !this.#state.isJustNow(this.#openedAt)) {
      this.#drop();
      this.#database = this.#open();
    }
    this.#database ??= this.#openAgain();
    return this.#database;
  }

  /** SQLite would go on with a file that has no name any more, and all of it would be lost. */
  #isLost(): boolean {
    if (this.#database === undefined || this.#file === undefined) return false;
    const { identity } = stateOf(this.#file);
    return identity === undefined || identity !== this.#opened?.identity;
  }

  #openAgain(): Database {
    if (this.#state.failedJustNow || this.#isBroken()) throw this.#state.refusal();
    return this.#open();
  }

  #open(): Database {
    const { path, busyTimeoutMs, owner } = this.#options;
    // A file that disappeared must not be replaced by an empty one without keys.
    const isCreating = !this.#wasOpened && this.#broken === undefined;
    if (isCreating && this.#file !== undefined) mkdirSync(dirname(path), { recursive: true });
    const isOwned = this.#file !== undefined;
    const settings = { busyTimeoutMs, isCreating, owner: isOwned ? owner : undefined };
    const database = openDatabase(path, settings);
    this.#wasOpened = true;
    this.#openedAt = this.#state.clock.monotonic();
    this.#opened = stateOf(path);
    return database;
  }

  #isBroken(): boolean {
    const before = this.#broken?.file;
    if (before?.identity === undefined) return false;
    const now = stateOf(this.#options.path);
    return now.identity === before.identity && now.content === before.content;
  }

  #drop(): void {
    this.#isStale = false;
    const database = this.#database;
    this.#database = undefined;
    try {
      database?.close(true);
    } catch {
      // A broken database cannot always be closed properly.
    }
  }

  /** The error to throw; errors of statements, data and callers pass unchanged. */
  #readFailure(error: unknown): unknown {
    if (error instanceof StorageUnavailable && !(error instanceof UnusableDatabase)) return error;
    const trouble = troubleOf(error);
    if (trouble === undefined && this.#database !== undefined) return error;
    // Without a connection, only opening can have failed.
    const { what, cure } = trouble ?? { what: "cannot be opened", cure: "drop" };
    this.#state.failed({ what, isOfChanges: ["wait", "change", "reopen"].includes(cure) }, error);
    if (this.#file !== undefined) {
      if (cure === "reopen") this.#isStale = true;
      if (cure === "drop" || cure === "restore") this.#drop();
      if (cure === "restore") this.#broken = { what, file: stateOf(this.#file) };
    }
    return error instanceof UnusableDatabase ? error : this.#state.unavailable(what, error);
  }

  #worked(isChange: boolean): void {
    this.#broken = undefined;
    this.#state.worked(isChange);
  }
}

type FileState = ReturnType<typeof stateOf>;

/** Which file a path leads to, and what is in it; both are undefined without a file. */
function stateOf(path: string) {
  const stats = statSync(path, { bigint: true, throwIfNoEntry: false });
  return {
    // Inode numbers are reused; birth times are not.
    identity: stats && `${stats.dev} ${stats.ino} ${stats.birthtimeNs}`,
    content: stats && `${stats.size} ${stats.mtimeNs}`,
  };
}
