import { sql } from "kysely";
import type { Clock } from "../../domain/clock.ts";
import { SqlControlStore } from "../repositories/control-store.ts";
import { SqlKeyStore } from "../repositories/key-store.ts";
import { SqlReplyStore } from "../repositories/reply-store.ts";
import { SqlStoredCalls } from "../repositories/usage/stored-calls.ts";
import { SqlUsageReports } from "../repositories/usage/usage-reports.ts";
import { SqlUsageStore } from "../repositories/usage/usage-store.ts";
import type { DroppedRows } from "../store.ts";
import { JobLocks } from "../repositories/job-locks.ts";
import { ProcessStore } from "../repositories/process-store.ts";
import { NoticeListener } from "./connection/notices.ts";
import { PostgresConnection, type PostgresOptions } from "./connection/connection.ts";
import { isFaultOfData } from "./connection/postgres-trouble.ts";

/** The clocks of processes differ. */
export const serverTime = sql<number>`(extract(epoch from clock_timestamp()) * 1000)::bigint`;

export interface StoreOptions extends Pick<
  PostgresOptions,
  "owner" | "onTrouble" | "onRecovered" | "poolSize"
> {
  /** Called for calls that came too late to be stored. */
  readonly onDropped?: (dropped: DroppedRows) => void;
}

/** All stores of a database, on one pool that connects on first use. */
export function openStores(url: string, clock: Clock, options: StoreOptions = {}) {
  const { onDropped, ...ofConnection } = options;
  const connection = new PostgresConnection({ url, clock, ...ofConnection });
  const usage = connection.inLane("usage");
  return {
    connection,
    control: new SqlControlStore(connection),
    keys: new SqlKeyStore(connection.inLane("entities"), clock),
    usage: new SqlUsageStore(usage, { isFaultOfData, onDropped }),
    storedCalls: new SqlStoredCalls(usage),
    replies: new SqlReplyStore({
      replies: connection.inLane("replies"),
      claims: connection.inLane(undefined),
      now: () => serverTime,
    }),
    reports: new SqlUsageReports(usage),
    jobLocks: new JobLocks(connection.inLane(undefined), () => serverTime),
    processes: new ProcessStore({
      // Each process writes its own row, so a frozen one must not stop the others.
      connection: connection.inLane(undefined),
      now: () => serverTime,
      watch: (watcher) => new NoticeListener({ connection: { url }, clock, watcher }),
    }),
  };
}
