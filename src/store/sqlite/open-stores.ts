import { sql } from "kysely";
import type { Clock } from "../../domain/clock.ts";
import { SqlControlStore } from "../repositories/control-store.ts";
import { SqlKeyStore } from "../repositories/key-store.ts";
import { JobLocks } from "../repositories/job-locks.ts";
import { ProcessStore } from "../repositories/process-store.ts";
import { SqlReplyStore } from "../repositories/reply-store.ts";
import { SqlStoredCalls } from "../repositories/usage/stored-calls.ts";
import { SqlUsageReports } from "../repositories/usage/usage-reports.ts";
import { SqlUsageStore } from "../repositories/usage/usage-store.ts";
import { SqliteConnection, type SqliteOptions } from "./connection/connection.ts";
import type { DroppedRows } from "../store.ts";
import { isFaultOfData } from "./connection/sqlite-trouble.ts";
import { insertCalls } from "./insert-calls.ts";

export type SqliteStores = ReturnType<typeof openStores>;

export interface StoreOptions extends Pick<SqliteOptions, "owner" | "onTrouble" | "onRecovered"> {
  /** Called for calls that came too late to be stored. */
  readonly onDropped?: (dropped: DroppedRows) => void;
}

/** Short, because the wait of a statement blocks the event loop and with it every stream. */
const busyTimeoutMs = 10;

/** All stores of a database, on one connection that opens on first use. */
export function openStores(path: string, clock: Clock, options: StoreOptions = {}) {
  const { onDropped, ...ofConnection } = options;
  const connection = new SqliteConnection({ path, busyTimeoutMs, clock, ...ofConnection });
  return {
    connection,
    control: new SqlControlStore(connection),
    keys: new SqlKeyStore(connection, clock),
    usage: new SqlUsageStore(connection, { isFaultOfData, onDropped, insertNew: insertCalls }),
    storedCalls: new SqlStoredCalls(connection),
    replies: new SqlReplyStore({
      replies: connection,
      claims: connection,
      // All processes are on one machine.
      now: () => sql<number>`${clock.now()}`,
    }),
    reports: new SqlUsageReports(connection),
    jobLocks: new JobLocks(connection, () => sql<number>`${clock.now()}`),
    processes: new ProcessStore({
      connection,
      now: () => sql<number>`${clock.now()}`,
      // Nobody announces changes in a file.
      watch: () => ({ stop: () => undefined }),
    }),
  };
}
