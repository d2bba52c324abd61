import type { ClientBase, Pool, PoolClient } from "pg";
import type { AuditSeals } from "../../../domain/audit/audit-seals.ts";
import { systemClock, type Clock } from "../../../domain/clock.ts";
import { nameOfDatabase } from "../../../domain/database-name.ts";
import { StorageUnavailable, UnusableDatabase } from "../../errors.ts";
import type { DatabaseOwner } from "../../installation.ts";
import type { SqlConnection } from "../../repositories/connection.ts";
import type { Queries } from "../../repositories/tables.ts";
import { type Lane, LaneQueue, lockOf } from "./lanes.ts";
import { meaningOf, troubleOf } from "./postgres-trouble.ts";
import { prepareDatabase } from "./prepare-database.ts";
import { inSession } from "./session.ts";
import { valueParsers } from "./value-parsers.ts";

export interface PostgresOptions {
  readonly url: string;
  /** Most connections of this process. Default 10. */
  readonly poolSize?: number | undefined;
  /** Longest wait for a connection. Default 2000. */
  readonly connectTimeoutMs?: number | undefined;
  /** Longest wait for another gateway's change. Default 5000. */
  readonly lockWaitMs?: number | undefined;
  /** Longest time of one statement. Default 10 000. */
  readonly statementTimeoutMs?: number | undefined;
  /** Shortest time between two attempts to reach a database that failed. Default 500. */
  readonly reopenIntervalMs?: number | undefined;
  /** Most transactions that wait or run. Default 1000. */
  readonly queueLimit?: number | undefined;
  readonly clock?: Pick<Clock, "monotonic"> | undefined;
  /** Without them the audit can be neither written nor verified. */
  readonly seals?: AuditSeals | undefined;
  /** Checks that the database is the right one. */
  readonly owner?: DatabaseOwner | undefined;
  /** Called once when the database stops working. */
  onTrouble?(what: string, error: unknown): void;
  onRecovered?(): void;
}

const beginEntities = beginIn("entities");
const beginRead = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY";

/**
 * The connections of a process to its database. Connects on first use, and again after a failure.
 * Reads run side by side, changes of one lane one at a time.
 */
export class PostgresConnection implements SqlConnection, AsyncDisposable {
  readonly #options: PostgresOptions;
  readonly #clock: Pick<Clock, "monotonic">;
  #pool: Promise<Pool> | undefined;
  readonly #lanes = new LaneQueue();
  #waiting = 0;
  #isClosed = false;
  #wasPrepared = false;
  /** Settled once the owner and the schema are checked; undefined after a failure. */
  #prepared: Promise<void> | undefined;
  #trouble: { readonly what: string; readonly error: unknown; readonly at: number } | undefined;

  constructor(options: PostgresOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  get seals(): AuditSeals {
    const { seals } = this.#options;
    if (seals === undefined) throw new Error("without peppers there is no audit");
    return seals;
  }

  /** Connects now. Throws `StorageUnavailable`, which includes `UnusableDatabase`. */
  open(): Promise<void> {
    return this.#counted(() => this.#prepare());
  }

  /** Sees all changes that this process began before. */
  read<Result>(work: (queries: Queries) => Promise<Result>): Promise<Result> {
    return this.#counted(async () => {
      await this.#lanes.idle("entities");
      return this.#transact(beginRead, work);
    });
  }

  change<Result>(work: (queries: Queries) => Promise<Result>): Promise<Result> {
    return this.#changeIn("entities", work);
  }

  /** The same connection with changes of one lane, and with reads that wait for none. */
  inLane(lane: Lane): SqlConnection {
    const seals = (): AuditSeals => this.seals;
    return {
      get seals() {
        return seals();
      },
      read: (work) => this.#counted(() => this.#transact(beginRead, work)),
      change: (work) => this.#changeIn(lane, work),
    };
  }

  /** Waits for what runs; everything later fails. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await (await this.#pool)?.end();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #changeIn<Result>(lane: Lane, work: (queries: Queries) => Promise<Result>): Promise<Result> {
    return this.#counted(() => this.#lanes.run(lane, () => this.#transact(beginIn(lane), work)));
  }

  async #counted<Result>(task: () => Promise<Result>): Promise<Result> {
    if (this.#waiting >= (this.#options.queueLimit ?? 1_000)) {
      throw new StorageUnavailable("too many operations wait for the database");
    }
    this.#waiting += 1;
    try {
      return await task();
    } finally {
      this.#waiting -= 1;
    }
  }

  async #transact<Result>(
    begin: string,
    work: (queries: Queries) => Promise<Result>,
  ): Promise<Result> {
    await this.#prepare();
    const client = await this.#connect();
    let isBroken = false;
    try {
      await ask(client, begin);
      const result = await inSession(client, work, { mayGoOn: begin === beginEntities });
      // A statement that failed has rolled back all others, even if `work` caught its error.
      if ((await ask(client, "COMMIT")) !== "COMMIT") {
        throw new StorageUnavailable("the transaction was rolled back");
      }
      this.#proveWorking();
      return result;
    } catch (error) {
      isBroken = this.#isTrouble(error) || !(await canRollBack(client));
      throw error;
    } finally {
      client.release(isBroken);
    }
  }

  async #prepare(): Promise<void> {
    if (this.#isClosed) throw new StorageUnavailable("the database was closed");
    const trouble = this.#trouble;
    if (trouble !== undefined && this.#prepared === undefined) {
      const elapsedMs = this.#clock.monotonic() - trouble.at;
      if (elapsedMs < (this.#options.reopenIntervalMs ?? 500)) throw this.#unavailable(trouble);
    }
    this.#prepared ??= this.#check();
    await this.#prepared;
  }

  /** On a connection of its own, because a step of the schema may take long. */
  async #check(): Promise<void> {
    const { owner, seals } = this.#options;
    const settings = { ...settingsOf(this.#options), statement_timeout: 0, lock_timeout: 0 };
    const { Client } = await loadDriver();
    const client = new Client({ ...settings, query_timeout: undefined });
    client.on("error", () => undefined);
    try {
      await client.connect();
      const name = this.#name;
      await prepareDatabase(client, { name, isCreating: !this.#wasPrepared, owner, seals });
      this.#wasPrepared = true;
      this.#proveWorking();
    } catch (error) {
      this.#prepared = undefined;
      throw this.#readFailure(error);
    } finally {
      client.end().catch(() => undefined);
    }
  }

  async #connect(): Promise<PoolClient> {
    try {
      this.#pool ??= openPool(this.#options);
      const pool = await this.#pool;
      return await pool.connect();
    } catch (error) {
      throw this.#readFailure(error);
    }
  }

  /** The error to throw for one of the driver. */
  #readFailure(error: unknown): unknown {
    if (error instanceof UnusableDatabase) {
      this.#report(error.message, error);
      return error;
    }
    const what = troubleOf(error)?.what ?? "cannot be used";
    this.#report(what, error);
    return this.#unavailable({ what, error });
  }

  /** Whether a transaction failed because of its connection. */
  #isTrouble(error: unknown): boolean {
    if (!(error instanceof StorageUnavailable) || error.cause === undefined) return false;
    const trouble = troubleOf(error.cause);
    if (trouble?.cure !== "reconnect") return false;
    this.#report(trouble.what, error.cause);
    return true;
  }

  #report(what: string, error: unknown): void {
    const isNew = this.#trouble?.what !== what;
    this.#trouble = { what, error, at: this.#clock.monotonic() };
    // Another database may answer the next time.
    this.#prepared = undefined;
    if (isNew) this.#options.onTrouble?.(what, error);
  }

  #proveWorking(): void {
    if (this.#trouble === undefined) return;
    this.#trouble = undefined;
    this.#options.onRecovered?.();
  }

  #unavailable({ what, error }: { readonly what: string; readonly error: unknown }) {
    return new StorageUnavailable(`the database ${this.#name} ${what}`, { cause: error });
  }

  get #name(): string {
    return nameOfDatabase(this.#options.url);
  }
}

/** Loaded on first use, because gateways with SQLite do not need it. */
const loadDriver = () => import("pg");

async function openPool(options: PostgresOptions): Promise<Pool> {
  const { Pool } = await loadDriver();
  const max = options.poolSize ?? 10;
  const pool = new Pool({ ...settingsOf(options), max, idleTimeoutMillis: 60_000 });
  // A connection that breaks while nothing waits for it; its next use finds that out.
  pool.on("error", () => undefined);
  pool.on("connect", (client) => client.on("error", () => undefined));
  return pool;
}

function settingsOf(options: PostgresOptions) {
  const statementTimeoutMs = options.statementTimeoutMs ?? 10_000;
  return {
    connectionString: options.url,
    application_name: "sluice",
    types: valueParsers,
    keepAlive: true,
    connectionTimeoutMillis: options.connectTimeoutMs ?? 2_000,
    lock_timeout: options.lockWaitMs ?? 5_000,
    statement_timeout: statementTimeoutMs,
    // A frozen gateway must not hold its lane.
    idle_in_transaction_session_timeout: statementTimeoutMs,
    // A frozen server ends no statement by itself.
    query_timeout: statementTimeoutMs + 2_000,
  };
}

function beginIn(lane: Lane): string {
  return `BEGIN; ${lockOf(lane)}`;
}

/** The command that the last of these statements turned out to be. */
async function ask(client: ClientBase, statements: string): Promise<string> {
  try {
    return (await client.query(statements)).command;
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
