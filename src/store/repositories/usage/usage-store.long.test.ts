import type { Ledger } from "../../../../test/contracts/usage-fixtures.ts";
import { usageHistoryContract } from "../../../../test/contracts/usage-history-contract.ts";
import { storedCallsContract } from "../../../../test/contracts/stored-calls-contract.ts";
import { usageReportsContract } from "../../../../test/contracts/usage-reports-contract.ts";
import { usageStoreContract } from "../../../../test/contracts/usage-store-contract.ts";
import { describeWithPostgres } from "../../../../test/support/postgres-databases.ts";
import { isFaultOfData } from "../../postgres/connection/postgres-trouble.ts";
import { costsIn } from "./reprice.ts";
import { SqlStoredCalls } from "./stored-calls.ts";
import { SqlUsageReports } from "./usage-reports.ts";
import { SqlUsageStore } from "./usage-store.ts";
import { testPeppers } from "../../../../test/support/test-peppers.ts";

describeWithPostgres(({ connect }) => {
  async function create(): Promise<Ledger> {
    const connection = (await connect()).inLane("usage");
    return {
      store: new SqlUsageStore(connection, { isFaultOfData, clock: Date, peppers: testPeppers() }),
      reports: new SqlUsageReports(connection),
      costs: costsIn(connection, testPeppers()),
    };
  }

  usageStoreContract("PostgreSQL", create);
  usageReportsContract("PostgreSQL", create);
  usageHistoryContract("PostgreSQL", create);
  storedCallsContract("PostgreSQL", async () => {
    const connection = (await connect()).inLane("usage");
    const usage = new SqlUsageStore(connection, {
      isFaultOfData,
      clock: Date,
      peppers: testPeppers(),
    });
    return { usage, open: () => new SqlStoredCalls(connection, testPeppers()) };
  });
});
