import { sql } from "kysely";
import type { Clock } from "../../domain/clock.ts";
import { callColumns } from "../repositories/usage/usage-row.ts";
import { openStores as openIn, type StoreOptions } from "../repositories/open-stores.ts";
import { StorageUnavailable } from "../errors.ts";
import { SqliteConnection } from "./connection/connection.ts";
import { isFaultOfData } from "./connection/sqlite-trouble.ts";
import { runForEach } from "./connection/session.ts";

/** Short, because the wait of a statement blocks the event loop and with it every stream. */
const busyTimeoutMs = 10;

/** All stores of a database, on one connection that opens on first use. */
export function openStores(path: string, clock: Clock, options: StoreOptions) {
  const { onDropped, peppers, ...ofConnection } = options;
  const connection = new SqliteConnection({ path, busyTimeoutMs, clock, ...ofConnection });
  const stores = openIn({
    connection,
    clock,
    isFaultOfData,
    onDropped,
    peppers,
    insertNew: (queries, rows) => runForEach(queries, insertCall, rows),
    // All processes are on one machine.
    now: () => sql<number>`${clock.now()}`,
    onErased: () => emptyLog(connection, clock),
    // Nobody announces changes in a file.
    watchKeys: () => ({ stop: () => undefined }),
  });
  return { connection, ...stores };
}

/** The log of changes has pages as they were, until it is emptied. A reader can delay that. */
async function emptyLog(connection: SqliteConnection, clock: Clock): Promise<void> {
  for (let left = logAttempts; left > 0; left -= 1) {
    const state = await connection.use((database) => {
      return database.query<{ busy: number }, []>("PRAGMA wal_checkpoint(TRUNCATE)").get();
    });
    if (state?.busy !== 1) return;
    await new Promise<void>((resolve) => void clock.schedule(resolve, logPauseMs));
  }
  throw new StorageUnavailable("the log of the database could not be emptied: others read it");
}

const logAttempts = 100;
const logPauseMs = 20;

const names = Object.keys(callColumns);
const insertCall = `insert into usage (${names.join(", ")}) values (${names.map(() => "?").join(", ")})
  on conflict (id) do nothing`;
