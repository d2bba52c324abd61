import type { Config } from "../../config/config.ts";
import type { Clock } from "../../domain/clock.ts";
import type { ControlStore } from "../../store/control-store.ts";
import type { JobLocks } from "../../store/repositories/job-locks.ts";
import type { ProcessStore } from "../../store/repositories/process-store.ts";
import { openStores as openPostgres } from "../../store/postgres/open-stores.ts";
import { openStores as openSqlite, type StoreOptions } from "../../store/sqlite/open-stores.ts";
import type { KeyStore, ReplyStore, StoredCalls, UsageStore } from "../../store/store.ts";
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
