import { replyStoreContract } from "../../../test/contracts/reply-store-contract.ts";
import { SqliteConnection } from "./connection/connection.ts";
import { SqlControlStore } from "../repositories/control-store.ts";
import { SqlReplyStore } from "../repositories/reply-store.ts";

replyStoreContract("SQLite", () => {
  const connection = new SqliteConnection({ path: ":memory:", busyTimeoutMs: 10 });
  const control = new SqlControlStore(connection);
  return {
    store: new SqlReplyStore(connection),
    erase: (accountId) => control.change(({ accounts }) => accounts.markErased(accountId, 1)),
  };
});
