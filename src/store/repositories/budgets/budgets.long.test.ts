import { afterEach, expect, test } from "bun:test";
import { budgetContract } from "../../../../test/contracts/budget-contract.ts";
import { describeWithPostgres } from "../../../../test/support/postgres-databases.ts";
import { openStores } from "../../postgres/open-stores.ts";
import { sql } from "kysely";
import { recordOf } from "../../../../test/contracts/usage-fixtures.ts";
import { ManualClock } from "../../../../test/support/manual-clock.ts";
import { nextBudgetEpoch } from "./spend.ts";

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

  test("calls under no budget wait for none, and a budget waits for calls", async () => {
    const url = await databases.server.createDatabase();
    const clock = new ManualClock({ wallMs: Date.UTC(2026, 10, 10) });
    const stores = openStores(url, clock, { poolSize: 4 });
    open.push(stores);
    const at = { startedAt: clock.now() };
    await stores.usage.insert([recordOf("first", at)]);
    const held = Promise.withResolvers<void>();
    const isHeld = Promise.withResolvers<void>();
    const order: string[] = [];
    const batch = stores.connection.inLane(undefined).change(async (queries) => {
      await sql`select value from epochs where name = 'budgets' for share`.execute(queries);
      isHeld.resolve();
      await held.promise;
      order.push("batch");
    });
    await isHeld.promise;
    await stores.usage.insert([recordOf("second", at)]);
    const budget = stores.connection.inLane(undefined).change(async (queries) => {
      await nextBudgetEpoch(queries);
      order.push("budget");
    });
    held.resolve();
    await Promise.all([batch, budget]);
    expect(order).toEqual(["batch", "budget"]);
  });
});
