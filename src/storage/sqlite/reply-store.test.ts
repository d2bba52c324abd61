import { replyStoreContract } from "../contract/reply-store-contract.ts";
import { SqliteConnection } from "./connection.ts";
import { SqliteControlStore } from "./control-store.ts";
import { SqliteReplyStore } from "./reply-store.ts";

replyStoreContract("SQLite", () => {
  const connection = new SqliteConnection({ path: ":memory:", busyTimeoutMs: 10 });
  const control = new SqliteControlStore(connection);
  return {
    store: new SqliteReplyStore(connection),
    erase: (accountId) => control.change(({ accounts }) => accounts.markErased(accountId, 1)),
  };
});
