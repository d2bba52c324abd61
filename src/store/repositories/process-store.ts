import { sql, type RawBuilder } from "kysely";
import type { ProcessRow, OwnProcessRow } from "../process-row.ts";
import { currentEpoch } from "./control/key-epochs.ts";
import { asRow, present } from "./row.ts";
import type { SqlConnection, Tables } from "./tables.ts";

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

type StoredRow = Tables["processes"] & { readonly silentMs: number };

/** Tells of changed keys; processes that hear nothing look for themselves. */
export type WatchKeys = (watcher: KeysWatcher) => KeysWatch;

export type ProcessStore = ReturnType<typeof processesIn>;

/** The rows of all processes on a database. `now`: the time in milliseconds, of one clock for all. */
export function processesIn(
  connection: Pick<SqlConnection, "change">,
  now: () => RawBuilder<number>,
) {
  return {
    /**
     * Stores the facts of this process and forgets those that are silent for longer than
     * `keptMs`. Throws `StorageUnavailable`.
     */
    sign(own: OwnProcessRow, keptMs: number): Promise<ProcessesSeen> {
      return connection.change(async (queries) => {
        const facts = { ...asRow(own), signedAt: now() };
        await queries
          .insertInto("processes")
          .values(facts)
          .onConflict((conflict) => conflict.column("id").doUpdateSet(facts))
          .execute();
        const silentSince = sql`${now()} - cast(${keptMs} as bigint)`;
        await sql`delete from processes where signed_at < ${silentSince}`.execute(queries);
        const { rows } = await sql<StoredRow>`
          select *, ${now()} - signed_at as silent_ms from processes
          order by name, number, id`.execute(queries);
        const processes = rows.map(({ signedAt: _signedAt, ...row }) => present(row));
        return { processes, keysEpoch: await currentEpoch(queries) };
      });
    },

    /** Removes the row of a process. */
    async leave(id: string): Promise<void> {
      await connection.change((queries) =>
        queries.deleteFrom("processes").where("id", "=", id).execute(),
      );
    },
  };
}
