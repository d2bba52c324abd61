import { afterEach } from "bun:test";
import { budgetContract } from "../../../../test/contracts/budget-contract.ts";
import { describeWithPostgres } from "../../../../test/support/postgres-databases.ts";
import { openStores } from "../../postgres/open-stores.ts";

describeWithPostgres((databases) => {
  const open: ReturnType<typeof openStores>[] = [];

  afterEach(async () => {
    await Promise.all(open.splice(0).map(({ connection }) => connection.close()));
  });

  budgetContract("PostgreSQL", async (count, clock) => {
    const url = await databases.server.createDatabase();
    const all = Array.from({ length: count }, () => openStores(url, clock, { poolSize: 4 }));
    open.push(...all);
    return all;
  });
});
