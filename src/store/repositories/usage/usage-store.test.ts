import type { Ledger } from "../../../../test/contracts/usage-fixtures.ts";
import { usageHistoryContract } from "../../../../test/contracts/usage-history-contract.ts";
import { usageReportsContract } from "../../../../test/contracts/usage-reports-contract.ts";
import { usageStoreContract } from "../../../../test/contracts/usage-store-contract.ts";
import { SqliteConnection } from "../../sqlite/connection/connection.ts";
import { isFaultOfData } from "../../sqlite/connection/sqlite-trouble.ts";
import { SqlUsageReports } from "./usage-reports.ts";
import { SqlUsageStore } from "./usage-store.ts";

usageStoreContract("SQLite", create);
usageReportsContract("SQLite", create);
usageHistoryContract("SQLite", create);

function create(): Ledger {
  const connection = new SqliteConnection({ path: ":memory:", busyTimeoutMs: 10 });
  return {
    store: new SqlUsageStore(connection, { isFaultOfData }),
    reports: new SqlUsageReports(connection),
  };
}
