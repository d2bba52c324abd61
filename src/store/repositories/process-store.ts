import { sql, type RawBuilder } from "kysely";
import type { ProcessRow, OwnProcessRow } from "../process-row.ts";
import { currentEpoch } from "./control/key-epochs.ts";
import { asRow, present } from "./row.ts";
import type { SqlConnection } from "./tables.ts";

export interface ProcessStoreOptions {
  readonly connection: Pick<SqlConnection, "change">;
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
  sign(own: OwnProcessRow, keptMs: number): Promise<ProcessesSeen> {
    const { connection, now } = this.#options;
    return connection.change(async (queries) => {
      const facts = { ...asRow(own), signedAt: now() };
      await queries
        .insertInto("processes")
        .values(facts)
        .onConflict((conflict) => conflict.column("id").doUpdateSet(facts))
        .execute();
      await queries
        .deleteFrom("processes")
        .where("signedAt", "<", sql<number>`${now()} - cast(${keptMs} as bigint)`)
        .execute();
      const rows = await queries
        .selectFrom("processes")
        .selectAll()
        .select(sql<number>`${now()} - signed_at`.as("silentMs"))
        .orderBy("name")
        .orderBy("number")
        .orderBy("id")
        .execute();
      const processes = rows.map(({ signedAt: _signedAt, ...row }) => present(row));
      return { processes, keysEpoch: await currentEpoch(queries) };
    });
  }

  /** Removes the row of a process. */
  leave(id: string): Promise<void> {
    return this.#options.connection.change(async (queries) => {
      await queries.deleteFrom("processes").where("id", "=", id).execute();
    });
  }
}
