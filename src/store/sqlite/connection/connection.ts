import type { Database } from "bun:sqlite";
import type { AuditSeals } from "../../../domain/audit/audit-seals.ts";
import { systemClock, type Clock } from "../../../domain/clock.ts";
import { StorageUnavailable, UnusableDatabase } from "../../errors.ts";
import type { DatabaseOwner } from "../../installation.ts";
import { DatabaseFile } from "./database-file.ts";
import { openDatabase } from "./open-database.ts";
import { inSession } from "./session.ts";
import type { SqlConnection } from "../../repositories/connection.ts";
import type { Queries } from "../../repositories/tables.ts";
import { type ExamineDatabase, Soundness } from "./soundness.ts";
import { damaged, type SqliteTrouble, stopsReading, troubleOf } from "./sqlite-trouble.ts";
import { beginChange, beginSnapshot, undo } from "./transaction.ts";

export interface SqliteOptions {
  /** A file, or `:memory:`. */
  readonly path: string;
  /** Longest wait of one statement for another process; it blocks the event loop. */
  readonly busyTimeoutMs: number;
  /** Longest wait for other processes in all; the event loop goes on meanwhile. Default 2000. */
  readonly lockWaitMs?: number | undefined;
  /** Shortest time between two tries to open the database. Default 500. */
  readonly reopenIntervalMs?: number | undefined;
  /** Most steps and transactions that wait for their turn. Default 1000. */
  readonly queueLimit?: number | undefined;
  readonly clock?: Pick<Clock, "monotonic"> | undefined;
  /** Without them the audit can be neither written nor verified. */
  readonly seals?: AuditSeals | undefined;
  /** Whose database it has to be. Of no matter in memory. */
  readonly owner?: DatabaseOwner | undefined;
  /** With it, a database is looked through once it is open, and before it is opened again if broken. */
  readonly examine?: ExamineDatabase | undefined;
  /** Called once when the database stops working. */
  onTrouble?(what: string, error: unknown): void;
  onRecovered?(): void;
}

const retryMs = 20;

/**
 * The one connection of a process to its database. Opens it when it is first needed, and again when
 * it stopped working and may have been mended. Steps and transactions run one after another, in the
 * order they were asked for.
 */
export class SqliteConnection implements SqlConnection {
  readonly #options: SqliteOptions;
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #lockWaitMs: number;
  readonly #file: DatabaseFile | undefined;
  readonly #soundness: Soundness | undefined;
  #database: Database | undefined;
  #last: Promise<unknown> = Promise.resolve();
  #waiting = 0;
  #isClosed = false;
  #wasOpened = false;
  #triedAt: number | undefined;
  #isToBeReopened = false;
  /** What does not work now; of a database that can still be read, only a change proves it mended. */
  #trouble: (SqliteTrouble & { readonly error: unknown }) | undefined;
  #needsRestore: string | undefined;

  constructor(options: SqliteOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#lockWaitMs = options.lockWaitMs ?? 2_000;
    if (options.path === ":memory:") return;
    this.#file = new DatabaseFile(options.path);
    this.#soundness = new Soundness(options.path, this.#file, options.examine);
  }

  /** What is wrong with the file, as long as it does not work and nothing but another one helps. */
  get needsRestore(): string | undefined {
    return this.#needsRestore;
  }

  get seals(): AuditSeals {
    const { seals } = this.#options;
    if (seals === undefined) throw new Error("without peppers there is no audit");
    return seals;
  }

  /** Opens the database now. Throws `StorageUnavailable`; of it `UnusableDatabase`. */
  open(): Promise<void> {
    return this.use(() => undefined);
  }

  /**
   * Runs a synchronous step. It runs again when another process was writing: more than one change
   * belongs in `transact`. Throws `StorageUnavailable`.
   */
  use<Result>(step: (database: Database) => Result): Promise<Result> {
    return this.#inTurn(async (waitedMs) => {
      const result = await this.#retry(waitedMs, step);
      this.#proveWorking(false);
      return result;
    });
  }

  /** Reads one state of the data, however many steps `work` takes. Throws `StorageUnavailable`. */
  snapshot<Result>(work: (database: Database) => Promise<Result>): Promise<Result> {
    return this.#inTransaction(beginSnapshot, false, work);
  }

  /**
   * All or nothing: what `work` throws undoes all it did. `work` must use the database it is given,
   * never this connection, and wait for nothing else. Throws `StorageUnavailable`.
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

  /** Waits for what was asked for before; everything later fails. */
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
        // SQLite undoes a transaction by itself, such as when the disk is full.
        if (!database.inTransaction) throw new StorageUnavailable("the transaction was undone");
        database.run("COMMIT");
        this.#proveWorking(isChange);
        return result;
      } catch (error) {
        undo(database);
        throw this.#readFailure(error);
      }
    });
  }

  /** `task` learns how long it waited for its turn. */
  #inTurn<Result>(task: (waitedMs: number) => Promise<Result>): Promise<Result> {
    if (this.#waiting >= (this.#options.queueLimit ?? 1_000)) {
      return Promise.reject(new StorageUnavailable("too much waits for the database"));
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

  /** Waits off the event loop while others write, no longer in all than callers are told. */
  async #retry<Result>(
    waitedBeforeMs: number,
    step: (database: Database) => Result,
  ): Promise<Result> {
    for (let waitedMs = waitedBeforeMs; ; waitedMs += retryMs + this.#options.busyTimeoutMs) {
      try {
        return step(await this.#acquire());
      } catch (error) {
        const isLocked = troubleOf(error)?.cure === "wait";
        if (!isLocked || waitedMs >= this.#lockWaitMs) throw this.#readFailure(error);
      }
      await Bun.sleep(retryMs);
    }
  }

  async #acquire(): Promise<Database> {
    if (this.#isClosed) throw new StorageUnavailable("the database was closed");
    const damage = this.#database === undefined ? undefined : this.#file?.findDamage();
    if (damage !== undefined) {
      this.#report({ what: damage, cure: "drop" }, undefined);
      this.#drop();
    }
    if (this.#isToBeReopened && !this.#opensTooSoon()) this.#drop();
    this.#database ??= await this.#openAgain();
    return this.#database;
  }

  #opensTooSoon(): boolean {
    const intervalMs = this.#options.reopenIntervalMs ?? 500;
    return this.#triedAt !== undefined && this.#clock.monotonic() - this.#triedAt < intervalMs;
  }

  async #openAgain(): Promise<Database> {
    const { path, seals, ...options } = this.#options;
    const trouble = this.#trouble;
    if (trouble !== undefined && (this.#opensTooSoon() || !this.#mayOpen())) {
      throw this.#unavailable(trouble.what, trouble.error);
    }
    this.#triedAt = this.#clock.monotonic();
    this.#file?.prepare();
    // A file that was there and is gone must not be replaced by an empty one, without any keys.
    const isCreating = !this.#wasOpened && this.#needsRestore === undefined;
    const owner = this.#file && options.owner;
    const { busyTimeoutMs } = options;
    const database = await openDatabase(path, { busyTimeoutMs, isCreating, owner, seals });
    this.#wasOpened = true;
    this.#file?.remember();
    void this.#examine(database);
    return database;
  }

  #mayOpen(): boolean {
    return this.#needsRestore === undefined || this.#soundness?.mayOpen() !== false;
  }

  /** Damage shows where a page is read, which may be never: all of them are, beside all else. */
  async #examine(database: Database): Promise<void> {
    const problem = await this.#soundness?.findDamage();
    if (problem === undefined) return;
    await this.#chain(() => {
      if (database === this.#database) this.#giveUp(damaged, new Error(problem));
      return Promise.resolve();
    });
  }

  #giveUp(trouble: SqliteTrouble, error: unknown): void {
    this.#report(trouble, error);
    if (this.#file === undefined) return;
    if (trouble.cure === "reopen") this.#isToBeReopened = true;
    if (stopsReading(trouble)) this.#drop();
    if (trouble.cure === "restore") this.#soundness?.noteBroken();
  }

  #drop(): void {
    this.#isToBeReopened = false;
    const database = this.#database;
    this.#database = undefined;
    try {
      database?.close(true);
    } catch {
      // A database that is broken cannot always be closed in order.
    }
  }

  /** What to throw; faults of statements and data, and what callers threw, stay as they are. */
  #readFailure(error: unknown): unknown {
    if (error instanceof StorageUnavailable && !(error instanceof UnusableDatabase)) return error;
    const trouble = troubleOf(error);
    const isOpen = this.#database !== undefined;
    if (trouble === undefined && isOpen) return error;
    // Without a connection, nothing but opening it can have failed.
    const known = trouble ?? { what: "cannot be opened", cure: "drop" };
    this.#giveUp(known, error);
    return error instanceof UnusableDatabase ? error : this.#unavailable(known.what, error);
  }

  #report({ what, cure }: SqliteTrouble, error: unknown): void {
    const isNew = this.#trouble?.what !== what;
    this.#trouble = { what, cure, error };
    if (cure === "restore") this.#needsRestore = what;
    if (isNew) this.#options.onTrouble?.(what, error);
  }

  #unavailable(what: string, cause: unknown): StorageUnavailable {
    return new StorageUnavailable(`the database ${this.#options.path} ${what}`, { cause });
  }

  #proveWorking(isChange: boolean): void {
    if (this.#trouble === undefined || !(isChange || stopsReading(this.#trouble))) return;
    this.#trouble = undefined;
    this.#needsRestore = undefined;
    this.#options.onRecovered?.();
  }
}
