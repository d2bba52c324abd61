import { controlStoreContract } from "../../../test/contracts/control-store-contract.ts";
import { keyStoreContract } from "../../../test/contracts/key-store-contract.ts";
import { replyStoreContract } from "../../../test/contracts/reply-store-contract.ts";
import { describeWithPostgres } from "../../../test/support/postgres-databases.ts";
import { SqlControlStore } from "../repositories/control-store.ts";
import { SqlKeyStore } from "../repositories/key-store.ts";
import { SqlReplyStore } from "../repositories/reply-store.ts";

describeWithPostgres(({ connect }) => {
  controlStoreContract("PostgreSQL", async () => new SqlControlStore(await connect()));

  keyStoreContract("PostgreSQL", async (clock) => {
    const connection = await connect();
    return {
      keys: new SqlKeyStore(connection.inLane("entities"), clock),
      control: new SqlControlStore(connection),
    };
  });

  replyStoreContract("PostgreSQL", async () => {
    const connection = await connect();
    const control = new SqlControlStore(connection);
    return {
      store: new SqlReplyStore(connection.inLane("replies")),
      erase: (accountId) => control.change(({ accounts }) => accounts.markErased(accountId, 1)),
    };
  });
});
