import type { Config } from "../../config/config.ts";
import type { Clock } from "../../domain/clock.ts";
import type { InspectedDatabase } from "../../store/store.ts";
import { inspectServer } from "../../store/postgres/connection/inspect-server.ts";
import type { FoundSchema } from "../../store/schema-version.ts";
import { inspectFile } from "../../store/sqlite/connection/open-database.ts";

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
