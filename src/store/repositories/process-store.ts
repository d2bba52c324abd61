import { sql, type RawBuilder } from "kysely";
import type { ProcessRow, ProcessFacts } from "../../domain/process-row.ts";
import { currentEpoch } from "./control/key-epochs.ts";
import { present } from "./row.ts";
import type { Queries } from "./tables.ts";

export interface ProcessStoreOptions {
  readonly connection: {
    change<Result>(work: (queries: Queries) => Promise<Result>): Promise<Result>;
  };
  /** The time in milliseconds, of one clock for all processes. */
  readonly now: () => RawBuilder<number>;
  /** Tells of changed keys; processes that hear nothing look for themselves. */
  readonly watch: (watcher: KeysWatcher) => KeysWatch;
}

export interface ProcessesSeen {
  /** This process included. */
  readonly processes: readonly ProcessRow[];
  /** Epoch of the newest change of keys. */
  readonly keysEpoch: number;
}

/** Hears of changes of keys by any gateway. */
export interface KeysWatcher {
  /** `epoch` is undefined when changes may have been missed. */
  keysChanged(epoch: number | undefined): void;
  /** Called once when the messages stop, and when they are back. */
  lost(error: unknown): void;
  back(): void;
}

export interface KeysWatch {
  stop(): void;
}

/** The rows of all processes on a database. */
export class ProcessStore {
  readonly #options: ProcessStoreOptions;
  readonly watch: ProcessStoreOptions["watch"];

  constructor(options: ProcessStoreOptions) {
    this.#options = options;
    this.watch = options.watch;
  }

  /**
   * Stores the facts of this process and forgets those that are silent for longer than
   * `keptMs`. Throws `StorageUnavailable`.
   */
  sign(own: ProcessFacts, keptMs: number): Promise<ProcessesSeen> {
    const { connection, now } = this.#options;
    return connection.change(async (queries) => {
      await writeRow(queries, own, now());
      await queries
        .deleteFrom("processes")
        .where("signedAt", "<", sql<number>`${now()} - cast(${keptMs} as bigint)`)
        .execute();
      return { processes: await readRows(queries, now()), keysEpoch: await currentEpoch(queries) };
    });
  }

  /** Removes the row of a process. */
  leave(id: string): Promise<void> {
    return this.#options.connection.change(async (queries) => {
      await queries.deleteFrom("processes").where("id", "=", id).execute();
    });
  }
}

async function writeRow(
  queries: Queries,
  own: ProcessFacts,
  signedAt: RawBuilder<number>,
): Promise<void> {
  const { id, configDigest = null, limitsDigest = null, pepperMarks = null, ...rest } = own;
  const { keysEpoch = null, notReady = null, degraded = null, ...others } = rest;
  const compared = { configDigest, limitsDigest, pepperMarks };
  const state = { keysEpoch, notReady, degraded };
  const facts = { ...others, ...compared, ...state, signedAt };
  await queries
    .insertInto("processes")
    .values({ id, ...facts })
    .onConflict((conflict) => conflict.column("id").doUpdateSet(facts))
    .execute();
}

const columns = [
  "id",
  "name",
  "number",
  "version",
  "startedAt",
  "configuredAt",
  "configDigest",
  "limitsDigest",
  "pepperMarks",
  "keysEpoch",
  "adminUrl",
  "notReady",
  "degraded",
] as const;

async function readRows(queries: Queries, now: RawBuilder<number>): Promise<readonly ProcessRow[]> {
  const rows = await queries
    .selectFrom("processes")
    .select(columns)
    .select(sql<number>`${now} - signed_at`.as("silentMs"))
    .orderBy("name")
    .orderBy("number")
    .orderBy("id")
    .execute();
  return rows.map(present);
}
