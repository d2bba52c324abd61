import type { Config } from "../../config/config.ts";
import type { Clock } from "../../domain/clock.ts";
import type { ControlStore } from "../../store/control-store.ts";
import type { JobLocks } from "../../store/repositories/job-locks.ts";
import type { ProcessStore } from "../../store/repositories/process-store.ts";
import { inspectServer } from "../../store/postgres/connection/inspect-server.ts";
import type { FoundSchema } from "../../store/schema-version.ts";
import { inspectFile } from "../../store/sqlite/connection/open-database.ts";
import { openStores as openPostgres } from "../../store/postgres/open-stores.ts";
import { openStores as openSqlite, type StoreOptions } from "../../store/sqlite/open-stores.ts";
import type {
  InspectedDatabase,
  KeyStore,
  ReplyStore,
  StoredCalls,
  UsageStore,
} from "../../store/store.ts";
import type { UsageReports } from "../../store/usage-reports.ts";

/** All stores of a database of any kind. */
export interface DatabaseStores {
  readonly connection: DatabaseConnection;
  readonly control: ControlStore;
  readonly keys: KeyStore;
  readonly usage: UsageStore;
  readonly storedCalls: StoredCalls;
  readonly replies: ReplyStore;
  readonly reports: UsageReports;
  readonly jobLocks: JobLocks;
  readonly processes: ProcessStore;
}

interface DatabaseConnection {
  /** The damage of a file, if only another file would help. */
  readonly needsRestore?: string | undefined;
  /** Throws `StorageUnavailable`, which includes `UnusableDatabase`. */
  open(): Promise<void>;
  close(): Promise<void>;
}

/** The stores of the configured database, which opens on first use. */
export function openDatabaseStores(
  storage: Config["storage"],
  clock: Clock,
  options: StoreOptions = {},
): DatabaseStores {
  switch (storage.backend) {
    case "sqlite":
      return openSqlite(storage.path, clock, options);
    case "postgres": {
      const { poolSize } = storage;
      return openPostgres(storage.url.reveal(), clock, { poolSize, ...options });
    }
  }
}

export interface InspectedStorage extends InspectedDatabase {
  /** Undefined if the user may not change it. */
  readonly schema: FoundSchema | undefined;
}

/**
 * Reads what a start checks of the configured database, without changing it. Throws
 * `StorageUnavailable`, and an error for a path that leads to no file.
 */
export async function inspectStorage(
  storage: Config["storage"],
  clock: Pick<Clock, "now">,
): Promise<InspectedStorage> {
  return storage.backend === "sqlite"
    ? inspectFile(storage.path)
    : inspectServer(storage.url.reveal(), () => clock.now());
}
