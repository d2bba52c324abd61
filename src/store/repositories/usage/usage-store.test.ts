import type { Ledger } from "../../../../test/contracts/usage-fixtures.ts";
import { usageHistoryContract } from "../../../../test/contracts/usage-history-contract.ts";
import { storedCallsContract } from "../../../../test/contracts/stored-calls-contract.ts";
import { usageReportsContract } from "../../../../test/contracts/usage-reports-contract.ts";
import { usageStoreContract } from "../../../../test/contracts/usage-store-contract.ts";
import { SqliteConnection } from "../../sqlite/connection/connection.ts";
import { isFaultOfData } from "../../sqlite/connection/sqlite-trouble.ts";
import { costsIn } from "./reprice.ts";
import { SqlStoredCalls } from "./stored-calls.ts";
import { SqlUsageReports } from "./usage-reports.ts";
import { SqlUsageStore } from "./usage-store.ts";
import { testPeppers } from "../../../../test/support/test-peppers.ts";

usageStoreContract("SQLite", create);
usageReportsContract("SQLite", create);
usageHistoryContract("SQLite", create);
storedCallsContract("SQLite", () => {
  const connection = new SqliteConnection({ path: ":memory:", busyTimeoutMs: 10 });
  const usage = new SqlUsageStore(connection, {
    isFaultOfData,
    clock: Date,
    peppers: testPeppers(),
  });
  return Promise.resolve({ usage, open: () => new SqlStoredCalls(connection, testPeppers()) });
});

function create(): Ledger {
  const connection = new SqliteConnection({ path: ":memory:", busyTimeoutMs: 10 });
  return {
    store: new SqlUsageStore(connection, { isFaultOfData, clock: Date, peppers: testPeppers() }),
    reports: new SqlUsageReports(connection),
    costs: costsIn(connection, testPeppers()),
  };
}
