import { controlStoreContract } from "../../../test/contracts/control-store-contract.ts";
import { keyStoreContract } from "../../../test/contracts/key-store-contract.ts";
import { claimsContract } from "../../../test/contracts/claims-contract.ts";
import { responseStoreContract } from "../../../test/contracts/response-store-contract.ts";
import { replyStoreContract } from "../../../test/contracts/reply-store-contract.ts";
import { sql } from "kysely";
import { describeWithPostgres } from "../../../test/support/postgres-databases.ts";
import { ControlStore } from "../repositories/control-store.ts";
import { SqlKeyStore } from "../repositories/key-store.ts";
import { SqlResponseStore } from "../repositories/response-store.ts";
import { SqlReplyStore } from "../repositories/reply-store.ts";
import type { PostgresConnection } from "./connection/connection.ts";
import { serverTime } from "./open-stores.ts";
import { testPeppers } from "../../../test/support/test-peppers.ts";

describeWithPostgres((databases) => {
  const { connect } = databases;

  controlStoreContract("PostgreSQL", async () => new ControlStore(await connect(), testPeppers()));

  keyStoreContract("PostgreSQL", async (clock) => {
    const connection = await connect();
    return {
      keys: new SqlKeyStore(connection.inLane("entities"), clock),
      control: new ControlStore(connection, testPeppers()),
    };
  });

  replyStoreContract("PostgreSQL", async () => {
    const connection = await connect();
    const control = new ControlStore(connection, testPeppers());
    return {
      store: repliesOf(connection),
      erase: (accountId) => control.change(({ accounts }) => accounts.markErased(accountId, 1)),
    };
  });

  responseStoreContract("PostgreSQL", async () => {
    const url = await databases.server.createDatabase();
    const connections = [await connect({ url }), await connect({ url }), await connect({ url })];
    const [connection = await connect({ url })] = connections;
    const control = new ControlStore(connection, testPeppers());
    const others = connections.slice(1).map((each) => responsesOf(each));
    return { store: responsesOf(connection), control, others };
  });

  claimsContract("PostgreSQL", async () => {
    const connection = await connect();
    return {
      store: repliesOf(connection),
      pass: (durationMs) =>
        connection.change(async (queries) => {
          const askedAt = sql<number>`asked_at - ${durationMs}::bigint`;
          await queries.updateTable("callClaims").set({ askedAt }).execute();
        }),
    };
  });
});

function responsesOf(connection: PostgresConnection): SqlResponseStore {
  return new SqlResponseStore(connection.inLane("replies"));
}

function repliesOf(connection: PostgresConnection): SqlReplyStore {
  return new SqlReplyStore({
    replies: connection.inLane("replies"),
    claims: connection.inLane(undefined),
    now: () => serverTime,
  });
}
