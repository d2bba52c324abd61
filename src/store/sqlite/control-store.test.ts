import { controlStoreContract } from "../../../test/contracts/control-store-contract.ts";
import { keyStoreContract } from "../../../test/contracts/key-store-contract.ts";
import { SqliteConnection } from "./connection/connection.ts";
import { ControlStore } from "../repositories/control-store.ts";
import { SqlKeyStore } from "../repositories/key-store.ts";

controlStoreContract("SQLite", () => new ControlStore(connect()));

keyStoreContract("SQLite", (clock) => {
  const connection = connect();
  return {
    keys: new SqlKeyStore(connection, clock),
    control: new ControlStore(connection),
  };
});

function connect(): SqliteConnection {
  return new SqliteConnection({ path: ":memory:", busyTimeoutMs: 10 });
}
