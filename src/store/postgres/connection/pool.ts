import type { Client, Pool, PoolClient } from "pg";
import { StorageUnavailable } from "../../errors.ts";
import { driverUrl } from "./driver-url.ts";
import { valueParsers } from "./value-parsers.ts";

export interface PoolOptions {
  readonly url: string;
  /** Where the URL is from, for messages. Default: `storage.url`. */
  readonly setting?: string | undefined;
  /** Most connections of this process. Default 10. */
  readonly poolSize?: number | undefined;
  /** Longest wait for a connection. Default 2000. */
  readonly connectTimeoutMs?: number | undefined;
  /** Longest wait for another gateway's change. Default 5000. */
  readonly lockWaitMs?: number | undefined;
  /** Longest time of one statement. Default 10 000. */
  readonly statementTimeoutMs?: number | undefined;
}

export const defaultLockWaitMs = 5_000;

/** Connections that are given up together, because they may all lead to a server that is gone. */
export class ClientPool {
  readonly #pool: Promise<Pool>;

  constructor(options: PoolOptions) {
    this.#pool = openPool(options);
  }

  /** Throws the driver's errors, or `StorageUnavailable` when no connection becomes free. */
  async connect(): Promise<PoolClient> {
    const pool = await this.#pool;
    try {
      return await pool.connect();
    } catch (error) {
      if (!isFull(error)) throw error;
      throw new StorageUnavailable("all connections to the database are in use");
    }
  }

  /** Waits for the connections in use. */
  async end(): Promise<void> {
    const pool = await this.#pool.catch(() => undefined);
    await pool?.end();
  }
}

/**
 * A connection outside the pool, whose statements the server lets run for any time. Throws
 * `UnusableDatabase` for a URL that cannot be used.
 */
export async function createClient(options: PoolOptions): Promise<Client> {
  const { Client } = await loadDriver();
  const client = new Client({ ...settingsOf(options), statement_timeout: 0 });
  client.on("error", () => undefined);
  return client;
}

/** Loaded on first use, because gateways with SQLite do not need it. */
const loadDriver = () => import("pg");

async function openPool(options: PoolOptions): Promise<Pool> {
  const { Pool } = await loadDriver();
  const max = options.poolSize ?? 10;
  const pool = new Pool({ ...settingsOf(options), max, idleTimeoutMillis: 60_000 });
  // A connection that breaks while nothing waits for it; its next use finds that out.
  pool.on("error", () => undefined);
  pool.on("connect", (client) => client.on("error", () => undefined));
  return pool;
}

/** The driver has no code for it; a connection that cannot be made has another message. */
function isFull(error: unknown): boolean {
  return error instanceof Error && error.message === "timeout exceeded when trying to connect";
}

function settingsOf(options: PoolOptions) {
  const statementTimeoutMs = options.statementTimeoutMs ?? 10_000;
  return {
    connectionString: driverUrl(options.url, options.setting ?? "storage.url"),
    application_name: "sluice",
    types: valueParsers,
    keepAlive: true,
    connectionTimeoutMillis: options.connectTimeoutMs ?? 2_000,
    lock_timeout: options.lockWaitMs ?? defaultLockWaitMs,
    statement_timeout: statementTimeoutMs,
    // A frozen gateway must not hold its lane.
    idle_in_transaction_session_timeout: statementTimeoutMs,
    // A frozen server ends no statement by itself.
    query_timeout: statementTimeoutMs + 2_000,
  };
}
