import { controlStoreContract } from "../contract/control-store-contract.ts";
import { keyStoreContract } from "../contract/key-store-contract.ts";
import { SqliteConnection } from "./connection.ts";
import { SqliteControlStore } from "./control-store.ts";
import { SqliteKeyStore } from "./key-store.ts";

controlStoreContract("SQLite", () => new SqliteControlStore(connect()));

keyStoreContract("SQLite", (clock) => {
  const connection = connect();
  return {
    keys: new SqliteKeyStore(connection, clock),
    control: new SqliteControlStore(connection),
  };
});

function connect(): SqliteConnection {
  return new SqliteConnection({ path: ":memory:", busyTimeoutMs: 10 });
}
