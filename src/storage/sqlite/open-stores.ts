import type { Clock } from "../../domain/clock.ts";
import { SqliteConnection, type SqliteOptions } from "./connection.ts";
import { SqliteControlStore } from "./control-store.ts";
import { SqliteKeyStore } from "./key-store.ts";
import { SqliteUsageReports } from "./usage-reports.ts";
import { SqliteUsageStore } from "./usage-store.ts";

export interface SqliteStores {
  readonly connection: SqliteConnection;
  readonly control: SqliteControlStore;
  readonly keys: SqliteKeyStore;
  readonly usage: SqliteUsageStore;
  readonly reports: SqliteUsageReports;
}

export type SqliteEvents = Pick<SqliteOptions, "onTrouble" | "onRecovered">;

/** A wait of one statement blocks the event loop, and with it every stream: it must be short. */
const busyTimeoutMs = 10;

/** All stores of a database, on one connection that opens when it is first used. */
export function openStores(path: string, clock: Clock, events: SqliteEvents = {}): SqliteStores {
  const connection = new SqliteConnection({ path, busyTimeoutMs, clock, ...events });
  return {
    connection,
    control: new SqliteControlStore(connection),
    keys: new SqliteKeyStore(connection, clock),
    usage: new SqliteUsageStore(connection),
    reports: new SqliteUsageReports(connection),
  };
}
