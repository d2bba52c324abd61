import { usageReportsContract } from "../contract/usage-reports-contract.ts";
import { usageStoreContract } from "../contract/usage-store-contract.ts";
import type { Ledger } from "../contract/usage-fixtures.ts";
import { SqliteConnection } from "./connection.ts";
import { SqliteUsageReports } from "./usage-reports.ts";
import { SqliteUsageStore } from "./usage-store.ts";

usageStoreContract("SQLite", create);
usageReportsContract("SQLite", create);

function create(): Ledger {
  const connection = new SqliteConnection({ path: ":memory:", busyTimeoutMs: 10 });
  return {
    store: new SqliteUsageStore(connection),
    reports: new SqliteUsageReports(connection),
  };
}
