import type { Client, ClientBase, Pool, PoolClient } from "pg";
import { nameOfDatabase } from "../../../domain/addresses.ts";
import { StorageUnavailable, UnusableDatabase } from "../../errors.ts";
import type { DatabaseOwner } from "../../store.ts";
import { DatabaseState, type StateOptions } from "../../repositories/database-state.ts";
import type { Lane, Queries, SqlConnection } from "../../repositories/tables.ts";
import { beginIn, beginUnordered, LaneQueue } from "./lanes.ts";
import { tellEpoch } from "./notices.ts";
import {
  connectFrom,
  createClient,
  defaultLockWaitMs,
  openPool,
  type PoolOptions,
} from "./pool.ts";
import { meaningOf, type PostgresTrouble, troubleOf } from "./postgres-trouble.ts";
import { prepareDatabase } from "./prepare-database.ts";
import { inSession } from "./session.ts";

export interface PostgresOptions extends PoolOptions, StateOptions {
  /** Checks that the database is the right one. */
  readonly owner?: DatabaseOwner | undefined;
}

const beginEntities = beginIn("entities");
/** Other processes hear of changed keys with the commit, whichever repository changed them. */
const tellAndCommit = `${tellEpoch}; COMMIT`;
const beginRead = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY";

/**
 * The connections of a process to its database. Connects on first use, and again after a failure.
 * Reads run side by side, changes of one lane one at a time.
 */
export class PostgresConnection implements SqlConnection, AsyncDisposable {
  readonly #options: PostgresOptions;
  readonly #state: DatabaseState;
  /** Undefined until it is needed, and after a failure. */
  #pool: Promise<Pool> | undefined;
  /** Settled once the pools of before have ended. */
  #retired: Promise<unknown> = Promise.resolve();
  readonly #lanes: LaneQueue;
  #isClosed = false;
  #wasPrepared = false;
  /** Settled once the owner and the schema are checked; undefined after a failure. */
  #prepared: Promise<void> | undefined;

  constructor(options: PostgresOptions) {
    this.#options = options;
    this.#state = new DatabaseState(nameOfDatabase(options.url), options);
    this.#lanes = new LaneQueue(options.lockWaitMs ?? defaultLockWaitMs);
  }

  /** Connects now. Throws `StorageUnavailable`, which includes `UnusableDatabase`. */
  open(): Promise<void> {
    return this.#state.counted(() => this.#prepare());
  }

  /** Sees all changes that this process began before. */
  read<Result>(work: (queries: Queries) => Promise<Result>): Promise<Result> {
    return this.#state.counted(async () => {
      await this.#lanes.idle("entities");
      return this.#transact(beginRead, work);
    });
  }

  change<Result>(work: (queries: Queries) => Promise<Result>): Promise<Result> {
    return this.#changeIn("entities", work);
  }

  /**
   * The same connection with changes of one lane, or of none, and with reads that wait for none.
   */
  inLane(lane: Lane | undefined): SqlConnection {
    return {
      read: (work) => this.#state.counted(() => this.#transact(beginRead, work)),
      change: (work) =>
        lane === undefined
          ? this.#state.counted(() => this.#transact(beginUnordered, work))
          : this.#changeIn(lane, work),
    };
  }

  /** Waits for what runs; everything later fails. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#retirePool();
    await this.#retired;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #changeIn<Result>(lane: Lane, work: (queries: Queries) => Promise<Result>): Promise<Result> {
    return this.#state.counted(() =>
      this.#lanes.run(lane, () => this.#transact(beginIn(lane), work)),
    );
  }

  async #transact<Result>(
    begin: string,
    work: (queries: Queries) => Promise<Result>,
  ): Promise<Result> {
    await this.#prepare();
    if (this.#isClosed) throw wasClosed();
    const pool = (this.#pool ??= openPool(this.#options));
    const client = await this.#connect(pool);
    let isBroken = false;
    try {
      await ask(client, begin);
      const result = await inSession(client, work);
      // A statement that failed has rolled back all others, even if `work` caught its error.
      if ((await ask(client, begin === beginEntities ? tellAndCommit : "COMMIT")) !== "COMMIT") {
        throw new StorageUnavailable("the transaction was rolled back");
      }
      if (pool === this.#pool) this.#state.worked(begin !== beginRead);
      return result;
    } catch (error) {
      isBroken = this.#isTrouble(error, pool) || !(await canRollBack(client));
      throw error;
    } finally {
      client.release(isBroken);
    }
  }

  async #prepare(): Promise<void> {
    if (this.#isClosed) throw wasClosed();
    if (this.#prepared === undefined && this.#state.failedJustNow) throw this.#state.refusal();
    this.#prepared ??= this.#check();
    await this.#prepared;
  }

  /** On a connection of its own, because a step of the schema may take long. */
  async #check(): Promise<void> {
    const { owner } = this.#options;
    let client: Client | undefined;
    try {
      client = await createClient(this.#options);
      await client.connect();
      const settings = {
        name: nameOfDatabase(this.#options.url),
        isCreating: !this.#wasPrepared,
        owner,
      };
      await prepareDatabase(client, settings);
      this.#wasPrepared = true;
      this.#state.worked(false);
    } catch (error) {
      this.#prepared = undefined;
      throw this.#readFailure(error);
    } finally {
      client?.end().catch(() => undefined);
    }
  }

  async #connect(pool: Promise<Pool>): Promise<PoolClient> {
    try {
      return await connectFrom(await pool);
    } catch (error) {
      const isPoolFull =
        error instanceof StorageUnavailable && !(error instanceof UnusableDatabase);
      throw isPoolFull ? error : this.#readFailure(error);
    }
  }

  #retirePool(): void {
    const pool = this.#pool;
    if (pool === undefined) return;
    this.#pool = undefined;
    // Waits for the connections in use.
    const ended = pool.then((each) => each.end()).catch(() => undefined);
    this.#retired = Promise.all([this.#retired, ended]);
  }

  /** The error to throw for one of the driver. */
  #readFailure(error: unknown): unknown {
    if (error instanceof UnusableDatabase) {
      this.#report({ what: error.message }, error);
      return error;
    }
    const trouble = troubleOf(error) ?? { what: "cannot be used" };
    this.#report(trouble, error);
    return this.#state.unavailable(trouble.what, error);
  }

  /** Whether a transaction failed because of its connection. */
  #isTrouble(error: unknown, pool: Promise<Pool>): boolean {
    if (!(error instanceof StorageUnavailable) || error.cause === undefined) return false;
    const trouble = troubleOf(error.cause);
    if (trouble?.cure !== "reconnect") return false;
    // A connection made before the last failure shows nothing new.
    if (pool === this.#pool) this.#report(trouble, error.cause);
    return true;
  }

  #report(trouble: Pick<PostgresTrouble, "what" | "isOfChanges">, error: unknown): void {
    this.#state.failed(trouble, error);
    // Another database may answer the next time, and other connections may be broken too.
    this.#prepared = undefined;
    this.#retirePool();
  }
}

/** The command that the last of these statements turned out to be. */
async function ask(client: ClientBase, statements: string): Promise<string> {
  try {
    const results = [await client.query(statements)].flat();
    return results.at(-1)?.command ?? "";
  } catch (error) {
    throw meaningOf(error);
  }
}

async function canRollBack(client: ClientBase): Promise<boolean> {
  try {
    await client.query("ROLLBACK");
    return true;
  } catch {
    return false;
  }
}

function wasClosed(): StorageUnavailable {
  return new StorageUnavailable("the database was closed");
}
