import type { Database } from "bun:sqlite";
import { mkdirSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { systemClock, type Clock } from "../../../domain/clock.ts";
import { StorageUnavailable, UnusableDatabase } from "../../errors.ts";
import type { DatabaseOwner } from "../../store.ts";
import { openDatabase } from "./open-database.ts";
import { beginChange, beginSnapshot, inSession, undo } from "./session.ts";
import type { Queries, SqlConnection } from "../../repositories/tables.ts";
import { type SqliteTrouble, stopsReading, troubleOf } from "./sqlite-trouble.ts";

export interface SqliteOptions {
  /** A file, or `:memory:`. */
  readonly path: string;
  /** Longest wait of one statement for another process, which blocks the event loop. */
  readonly busyTimeoutMs: number;
  /** Longest total wait for other processes, which does not block the event loop. Default 2000. */
  readonly lockWaitMs?: number | undefined;
  /** Shortest time between two attempts to open the database. Default 500. */
  readonly reopenIntervalMs?: number | undefined;
  /** Most steps and transactions in the queue. Default 1000. */
  readonly queueLimit?: number | undefined;
  readonly clock?: Pick<Clock, "monotonic"> | undefined;
  /** Checks that the database is the right one; not used in memory. */
  readonly owner?: DatabaseOwner | undefined;
  /** Called once when the database stops working. */
  onTrouble?(what: string, error: unknown): void;
  onRecovered?(): void;
}

const retryMs = 20;

/**
 * The one connection of a process to its database. Opens it on first use, and again after a failure
 * that may have been repaired. Steps and transactions run one at a time, in order of arrival.
 */
export class SqliteConnection implements SqlConnection {
  readonly #options: SqliteOptions;
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #lockWaitMs: number;
  /** Undefined in memory. */
  readonly #file: string | undefined;
  #database: Database | undefined;
  /** The file when it was opened. */
  #opened: FileState | undefined;
  /** A damaged file, which is not opened again until another one takes its place. */
  #broken: FileState | undefined;
  #last: Promise<unknown> = Promise.resolve();
  #waiting = 0;
  #isClosed = false;
  #wasOpened = false;
  #triedAt: number | undefined;
  #isToBeReopened = false;
  /** The current failure. While reading still works, only a successful change clears it. */
  #trouble: (SqliteTrouble & { readonly error: unknown }) | undefined;

  constructor(options: SqliteOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#lockWaitMs = options.lockWaitMs ?? 2_000;
    this.#file = options.path === ":memory:" ? undefined : options.path;
  }

  /** The damage of the file, if only a different file would help. */
  get needsRestore(): string | undefined {
    return this.#trouble?.cure === "restore" ? this.#trouble.what : undefined;
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
      this.#proveWorking(false);
      return result;
    });
  }

  /**
   * Reads one consistent state of the data, in any number of steps. Throws `StorageUnavailable`.
   */
  snapshot<Result>(work: (database: Database) => Promise<Result>): Promise<Result> {
    return this.#inTransaction(beginSnapshot, false, work);
  }

  /**
   * Runs a transaction; an error thrown by `work` rolls back. `work` must use only the database it
   * is given, never this connection, and await nothing else. Throws `StorageUnavailable`.
   */
  transact<Result>(work: (database: Database) => Promise<Result>): Promise<Result> {
    return this.#inTransaction(beginChange, true, work);
  }

  read<Result>(work: (queries: Queries) => Promise<Result>): Promise<Result> {
    return this.snapshot((database) => inSession(database, work));
  }

  change<Result>(work: (queries: Queries) => Promise<Result>): Promise<Result> {
    return this.transact((database) => inSession(database, work));
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
        this.#proveWorking(isChange);
        return result;
      } catch (error) {
        undo(database);
        throw this.#readFailure(error);
      }
    });
  }

  /** Passes to `task` how long it was queued. */
  #inTurn<Result>(task: (waitedMs: number) => Promise<Result>): Promise<Result> {
    if (this.#waiting >= (this.#options.queueLimit ?? 1_000)) {
      return Promise.reject(new StorageUnavailable("too many operations wait for the database"));
    }
    const askedAt = this.#clock.monotonic();
    return this.#chain(() => task(this.#clock.monotonic() - askedAt));
  }

  async #chain<Result>(task: () => Promise<Result>): Promise<Result> {
    this.#waiting += 1;
    const result = this.#last.then(task);
    this.#last = result.catch(() => undefined);
    try {
      return await result;
    } finally {
      this.#waiting -= 1;
    }
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
    const loss = this.#database === undefined ? undefined : this.#findLoss();
    if (loss !== undefined) {
      this.#report({ what: loss, cure: "drop" }, undefined);
      this.#drop();
    }
    if (this.#isToBeReopened && !this.#opensTooSoon()) this.#drop();
    this.#database ??= this.#openAgain();
    return this.#database;
  }

  /** SQLite would go on with a file that has no name any more, and all of it would be lost. */
  #findLoss(): string | undefined {
    if (this.#file === undefined || this.#opened === undefined) return undefined;
    const now = stateOf(this.#file);
    if (now === undefined) return "is gone";
    return isSameFile(now, this.#opened) ? undefined : "was replaced by another file";
  }

  #opensTooSoon(): boolean {
    const intervalMs = this.#options.reopenIntervalMs ?? 500;
    return this.#triedAt !== undefined && this.#clock.monotonic() - this.#triedAt < intervalMs;
  }

  #openAgain(): Database {
    const { path, ...options } = this.#options;
    const trouble = this.#trouble;
    if (trouble !== undefined && (this.#opensTooSoon() || this.#isBroken())) {
      throw this.#unavailable(trouble.what, trouble.error);
    }
    this.#triedAt = this.#clock.monotonic();
    // A file that disappeared must not be replaced by an empty one without keys.
    const isCreating = !this.#wasOpened && this.#broken === undefined;
    if (isCreating && this.#file !== undefined) mkdirSync(dirname(path), { recursive: true });
    const owner = this.#file === undefined ? undefined : options.owner;
    const { busyTimeoutMs } = options;
    const settings = { busyTimeoutMs, isCreating, owner };
    const database = openDatabase(path, settings);
    this.#wasOpened = true;
    this.#opened = this.#file === undefined ? undefined : stateOf(this.#file);
    return database;
  }

  #isBroken(): boolean {
    const now = this.#broken === undefined ? undefined : stateOf(this.#options.path);
    if (now === undefined || this.#broken === undefined) return false;
    const { size, changedAt } = this.#broken;
    return isSameFile(now, this.#broken) && now.size === size && now.changedAt === changedAt;
  }

  #giveUp(trouble: SqliteTrouble, error: unknown): void {
    this.#report(trouble, error);
    if (this.#file === undefined) return;
    if (trouble.cure === "reopen") this.#isToBeReopened = true;
    if (stopsReading(trouble)) this.#drop();
    if (trouble.cure === "restore") this.#broken = stateOf(this.#file);
  }

  #drop(): void {
    this.#isToBeReopened = false;
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
    const isOpen = this.#database !== undefined;
    if (trouble === undefined && isOpen) return error;
    // Without a connection, only opening can have failed.
    const known = trouble ?? { what: "cannot be opened", cure: "drop" };
    this.#giveUp(known, error);
    return error instanceof UnusableDatabase ? error : this.#unavailable(known.what, error);
  }

  #report({ what, cure }: SqliteTrouble, error: unknown): void {
    const isNew = this.#trouble?.what !== what;
    this.#trouble = { what, cure, error };
    if (isNew) this.#options.onTrouble?.(what, error);
  }

  #unavailable(what: string, cause: unknown): StorageUnavailable {
    return new StorageUnavailable(`the database ${this.#options.path} ${what}`, { cause });
  }

  #proveWorking(isChange: boolean): void {
    if (this.#trouble === undefined || !(isChange || stopsReading(this.#trouble))) return;
    this.#trouble = undefined;
    this.#broken = undefined;
    this.#options.onRecovered?.();
  }
}

interface FileState {
  readonly device: bigint;
  readonly inode: bigint;
  readonly bornAt: bigint;
  readonly size: bigint;
  readonly changedAt: bigint;
}

function stateOf(path: string): FileState | undefined {
  const stats = statSync(path, { bigint: true, throwIfNoEntry: false });
  if (stats === undefined) return undefined;
  const { dev: device, ino: inode, size, birthtimeNs: bornAt, mtimeNs: changedAt } = stats;
  return { device, inode, bornAt, size, changedAt };
}

function isSameFile(one: FileState, other: FileState): boolean {
  // Inode numbers are reused; birth times are not.
  return one.device === other.device && one.inode === other.inode && one.bornAt === other.bornAt;
}
