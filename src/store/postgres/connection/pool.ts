import { readFileSync } from "node:fs";
import type { Client, Pool, PoolClient } from "pg";
import { verifiedSslMode, verifiedSslModes } from "../../../domain/addresses.ts";
import { StorageUnavailable, UnreadableUrlFile } from "../../errors.ts";

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

/** Connections that are given up together, because they may all lead to a server that is gone. */
export async function openPool(options: PoolOptions): Promise<Pool> {
  const { Pool } = await loadDriver();
  const max = options.poolSize ?? 10;
  const pool = new Pool({ ...settingsOf(options), max, idleTimeoutMillis: 60_000 });
  // A connection that breaks while nothing waits for it; its next use finds that out.
  pool.on("error", () => undefined);
  pool.on("connect", (client) => client.on("error", () => undefined));
  return pool;
}

/** Throws the driver's errors, or `StorageUnavailable` when no connection becomes free. */
export async function connectFrom(pool: Pool): Promise<PoolClient> {
  try {
    return await pool.connect();
  } catch (error) {
    // The driver has no code for it; a connection that cannot be made has another message.
    const isFull =
      error instanceof Error && error.message === "timeout exceeded when trying to connect";
    if (!isFull) throw error;
    throw new StorageUnavailable("all connections to the database are in use");
  }
}

function settingsOf(options: PoolOptions) {
  const statementTimeoutMs = options.statementTimeoutMs ?? 10_000;
  return {
    connectionString: driverUrl(options.url, options.setting ?? "storage.url"),
    application_name: "sluice",
    // Reports group by hashes instead of sorting on disk, and compiling their statements takes longer
    // than running them.
    options: "-c work_mem=64MB -c jit=off",
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

const files = ["sslrootcert", "sslcert", "sslkey"];

/**
 * The URL of a database as the driver takes it. The driver verifies certificates with each of
 * several modes, and warns that a later version will not: so they are named as what they are here.
 * `setting` is where the URL is from. Throws `UnreadableUrlFile`: the driver would not say which
 * setting names the file.
 */
export function driverUrl(url: string, setting: string): string {
  const { searchParams } = new URL(url);
  for (const name of files) {
    const path = searchParams.get(name);
    if (path !== null && path !== "") refuseUnreadable(path, `${name} of ${setting}`);
  }
  return verifiedSslMode(url) === undefined
    ? url
    : url.replace(verifiedSslModes, "$<before>verify-full");
}

function refuseUnreadable(path: string, name: string): void {
  try {
    readFileSync(path);
  } catch (error) {
    throw new UnreadableUrlFile(name, error instanceof Error ? error.message : String(error));
  }
}

/** Types by their numbers in the server's catalogue, `pg_type`. */
const [BOOL, BYTEA] = [16, 17];
const [INT8, INT2, INT4, FLOAT4, FLOAT8, NUMERIC] = [20, 21, 23, 700, 701, 1700];

/**
 * Whole numbers are read as numbers: counts and milliseconds stay far below 2^53. The driver would
 * return `bigint`, and sums of it, as text.
 */
const numbers: ReadonlySet<number> = new Set([FLOAT4, FLOAT8, INT2, INT4, INT8, NUMERIC]);

/** Reads the values of the column types that Sluice uses. */
export const valueParsers = {
  getTypeParser(type: number): (text: string) => string | number | boolean | Uint8Array {
    if (numbers.has(type)) return Number;
    // Written by the server as `\\x` and hexadecimal digits.
    if (type === BYTEA) return (text) => Uint8Array.fromHex(text.slice(2));
    return type === BOOL ? (text) => text === "t" : (text) => text;
  },
};
