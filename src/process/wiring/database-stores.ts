import type { Config } from "../../config/config.ts";
import type { Clock } from "../../domain/clock.ts";
import type { SqlStores, StoreOptions } from "../../store/repositories/open-stores.ts";
import { openStores as openPostgres } from "../../store/postgres/open-stores.ts";
import { openStores as openSqlite } from "../../store/sqlite/open-stores.ts";

/** All stores of a database of any kind. */
export interface DatabaseStores extends SqlStores {
  readonly connection: DatabaseConnection;
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
      return openSqlite(storage.path, clock, options);
    case "postgres": {
      const { poolSize } = storage;
      return openPostgres(storage.url.reveal(), clock, { poolSize, ...options });
    }
  }
}
