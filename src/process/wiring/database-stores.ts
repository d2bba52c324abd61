import type { Config } from "../../config/config.ts";
import type { Clock } from "../../domain/clock.ts";
import type { ControlStore } from "../../store/control-store.ts";
import type { ReplicaStore } from "../../store/replicas.ts";
import { openStores as openPostgres } from "../../store/postgres/open-stores.ts";
import { openStores as openSqlite, type StoreOptions } from "../../store/sqlite/open-stores.ts";
import { inspectSchema as inspectPostgres } from "../../store/postgres/connection/inspect-server.ts";
import type { SchemaCheck } from "../../store/schema-version.ts";
import { inspectSchema as inspectSqlite } from "../../store/sqlite/connection/schema-row.ts";
import type { KeyStore, ReplyStore, UsageStore } from "../../store/store.ts";
import type { UsageReports } from "../../store/usage-reports.ts";

/** All stores of a database of any kind. */
export interface DatabaseStores {
  readonly connection: DatabaseConnection;
  readonly control: ControlStore;
  readonly keys: KeyStore;
  readonly usage: UsageStore;
  readonly replies: ReplyStore;
  readonly reports: UsageReports;
  /** Undefined if only one gateway can use the database. */
  readonly replicas?: ReplicaStore | undefined;
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
  options: StoreOptions,
): DatabaseStores {
  switch (storage.backend) {
    case "sqlite":
      return openSqlite(storage.path, clock, { migrates: storage.migrates, ...options });
    case "postgres": {
      const { examine: _, ...ofServer } = options;
      const { poolSize, migrates } = storage;
      return openPostgres(storage.url.reveal(), clock, { poolSize, migrates, ...ofServer });
    }
  }
}

/** Reads the schema of the configured database, without changing it. Throws `StorageUnavailable`. */
export async function inspectSchema(storage: Config["storage"]): Promise<SchemaCheck> {
  return storage.backend === "sqlite"
    ? inspectSqlite(storage.path)
    : inspectPostgres(storage.url.reveal());
}
