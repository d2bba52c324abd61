import { loadPepper } from "../config/pepper.ts";
import type { Config } from "../config/config.ts";
import { systemClock } from "../domain/clock.ts";
import type { KeyServices } from "../admin/keys.ts";
import { createKeyDigest } from "../pipeline/authenticate.ts";
import { openDatabase } from "../storage/sqlite/open-database.ts";
import { SqliteKeyStore } from "../storage/sqlite/key-store.ts";
import { SqliteUsageStore } from "../storage/sqlite/usage-store.ts";
import type { UsageStore } from "../storage/store.ts";

export interface OpenStores extends Disposable {
  readonly keys: KeyServices;
  readonly usage: UsageStore;
}

/** Opens the database of a configuration beside a gateway that may be running on it. */
export function openStores(config: Config): OpenStores {
  const random = (target: Uint8Array): Uint8Array => crypto.getRandomValues(target);
  const pepper = loadPepper({ configured: config.auth.pepper, dataDir: config.dataDir, random });
  const database = openDatabase(config.storage.path);
  const store = new SqliteKeyStore(database);
  return {
    keys: { store, digest: createKeyDigest(pepper.reveal()), clock: systemClock, random },
    usage: new SqliteUsageStore(database),
    [Symbol.dispose]: () => database.close(),
  };
}
