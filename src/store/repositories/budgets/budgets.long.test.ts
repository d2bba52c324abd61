import { afterEach, expect, test } from "bun:test";
import {
  budgetContract,
  budgetOf,
  type OpenGateways,
} from "../../../../test/contracts/budget-contract.ts";
import { endUserBudgetContract } from "../../../../test/contracts/end-user-budget-contract.ts";
import { describeWithPostgres } from "../../../../test/support/postgres-databases.ts";
import { openStores } from "../../postgres/open-stores.ts";
import { sql } from "kysely";
import { recordOf } from "../../../../test/contracts/usage-fixtures.ts";
import { ManualClock } from "../../../../test/support/manual-clock.ts";
import { insertKey } from "../../../../test/contracts/control-fixtures.ts";
import { until } from "../../../../test/support/until.ts";
import { nextBudgetEpoch } from "./spend.ts";
import { testPeppers } from "../../../../test/support/test-peppers.ts";

describeWithPostgres((databases) => {
  const open: ReturnType<typeof openStores>[] = [];

  afterEach(async () => {
    await Promise.all(open.splice(0).map(({ connection }) => connection.close()));
  });

  const openGateways: OpenGateways = async (count, clock) => {
    const url = await databases.server.createDatabase();
    const all = Array.from({ length: count }, () =>
      openStores(url, clock, { poolSize: 4, peppers: testPeppers("test", "older") }),
    );
    open.push(...all);
    return all;
  };

  budgetContract("PostgreSQL", openGateways);
  endUserBudgetContract("PostgreSQL", openGateways);

  test("calls under no budget wait for none, and a budget waits for calls", async () => {
    const url = await databases.server.createDatabase();
    const clock = new ManualClock({ wallMs: Date.UTC(2026, 10, 10) });
    const stores = openStores(url, clock, { poolSize: 4, peppers: testPeppers() });
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

  test("batches of two gateways that meet a budget which is just made are stored, and it counts them once", async () => {
    const url = await databases.server.createDatabase();
    const clock = new ManualClock({ wallMs: Date.UTC(2026, 10, 10) });
    const gateways = [1, 2].map(() =>
      openStores(url, clock, { poolSize: 4, peppers: testPeppers() }),
    );
    open.push(...gateways);
    const [one] = gateways;
    if (one === undefined) throw new Error("there is no gateway");
    const ids = { account: "acct_a", application: "app_a1", key: "key_a11" };
    await insertKey(one.control, ids);
    for (let round = 0; round < 5; round += 1) {
      clock.advance(1_000);
      const at = { startedAt: clock.now(), accountId: ids.account, costNano: 1_000 };
      const id = `bgt_${round}`;
      const isMade = Promise.withResolvers<void>();
      const held = Promise.withResolvers<void>();
      const making = one.control.change(async ({ budgets }) => {
        await budgets.insert(budgetOf(id, { period: "total", createdAt: clock.now() }));
        isMade.resolve();
        await held.promise;
      });
      await isMade.promise;
      // Neither can see the budget when it begins.
      const batches = gateways.map(({ usage }, index) =>
        usage.insert([recordOf(`${id} ${index}`, at)]),
      );
      await waitsForEpoch(one);
      held.resolve();
      await Promise.all([making, ...batches]);
      const { spend } = await one.spend.since(0, 0);
      const ofBudget = spend.find(({ budgetId }) => budgetId === id);
      expect(ofBudget?.byProcess).toEqual({ "": 2_000 });
      await one.control.change(({ budgets }) => budgets.delete(id));
    }
  });
});

/** Until a transaction waits for the row of the one that makes a budget. */
async function waitsForEpoch({ connection }: ReturnType<typeof openStores>): Promise<void> {
  await until(async () => {
    const found = await connection.inLane(undefined).read((queries) =>
      sql`
      select 1 from pg_stat_activity
      where wait_event_type = 'Lock' and query ilike '%epochs%' and datname = current_database()`.execute(
        queries,
      ),
    );
    return found.rows.length > 0;
  });
}
