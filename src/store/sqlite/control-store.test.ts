import { controlStoreContract } from "../../../test/contracts/control-store-contract.ts";
import { keyStoreContract } from "../../../test/contracts/key-store-contract.ts";
import { SqliteConnection } from "./connection/connection.ts";
import { ControlStore } from "../repositories/control-store.ts";
import { SqlKeyStore } from "../repositories/key-store.ts";
import { testPeppers } from "../../../test/support/test-peppers.ts";

controlStoreContract("SQLite", () => new ControlStore(connect(), testPeppers()));

keyStoreContract("SQLite", (clock) => {
  const connection = connect();
  return {
    keys: new SqlKeyStore(connection, clock),
    control: new ControlStore(connection, testPeppers()),
  };
});

function connect(): SqliteConnection {
  return new SqliteConnection({ path: ":memory:", busyTimeoutMs: 10 });
}
