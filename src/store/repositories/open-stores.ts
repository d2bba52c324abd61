import type { RawBuilder } from "kysely";
import type { Clock } from "../../domain/clock.ts";
import { spendIn } from "./budgets/spend.ts";
import { ControlStore } from "./control-store.ts";
import type { DatabaseOwner } from "../store.ts";
import type { StateOptions } from "./database-state.ts";
import { jobLocksIn } from "./job-locks.ts";
import { SqlKeyStore } from "./key-store.ts";
import { pricesIn } from "./price-store.ts";
import { processesIn, type WatchKeys } from "./process-store.ts";
import { SqlReplyStore } from "./reply-store.ts";
import { SqlResponseStore } from "./response-store.ts";
import type { Lane, SqlConnection } from "./tables.ts";
import { SqlStoredCalls } from "./usage/stored-calls.ts";
import { costsIn } from "./usage/reprice.ts";
import { SqlUsageReports } from "./usage/usage-reports.ts";
import { SqlUsageStore, type UsageStoreOptions } from "./usage/usage-store.ts";

/** What differs between databases. */
interface StoreParts extends Omit<UsageStoreOptions, "clock"> {
  /** Its reads see all changes that this process began before. */
  readonly connection: SqlConnection & {
    /** The same with changes of one lane, or side by side, and with reads that wait for none. */
    inLane(lane: Lane | undefined): SqlConnection;
  };
  readonly clock: Clock;
  /** The time in milliseconds, of one clock for all processes. */
  readonly now: () => RawBuilder<number>;
  readonly watchKeys: WatchKeys;
}

export interface StoreOptions
  extends
    Pick<StateOptions, "onTrouble" | "onRecovered">,
    Pick<UsageStoreOptions, "onDropped" | "peppers"> {
  /** Checks that the database is the right one. */
  readonly owner?: DatabaseOwner | undefined;
}

/** All stores of a database. */
export type SqlStores = ReturnType<typeof openStores>;

export function openStores({ connection, clock, now, watchKeys, ...ofUsage }: StoreParts) {
  const usage = connection.inLane("usage");
  // A claim, a lock of a job and the row of a process are each decided by themselves.
  const sideBySide = connection.inLane(undefined);
  return {
    control: new ControlStore(connection, ofUsage.peppers),
    keys: new SqlKeyStore(connection.inLane("entities"), clock),
    usage: new SqlUsageStore(usage, { ...ofUsage, clock }),
    spend: spendIn(usage),
    costs: costsIn(usage, ofUsage.peppers),
    storedCalls: new SqlStoredCalls(usage, ofUsage.peppers),
    replies: new SqlReplyStore({ replies: connection.inLane("replies"), claims: sideBySide, now }),
    responses: new SqlResponseStore(connection.inLane("replies")),
    reports: new SqlUsageReports(usage),
    jobLocks: jobLocksIn(sideBySide, now),
    processes: processesIn(sideBySide, now),
    prices: pricesIn(connection.inLane("entities"), now),
    watchKeys,
  };
}
