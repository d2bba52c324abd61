import { usageReportsContract } from "../../../../test/contracts/usage-reports-contract.ts";
import { usageStoreContract } from "../../../../test/contracts/usage-store-contract.ts";
import type { Ledger } from "../../../../test/contracts/usage-fixtures.ts";
import { SqliteConnection } from "../connection/connection.ts";
import { SqlUsageReports } from "../../repositories/usage/usage-reports.ts";
import { SqliteUsageStore } from "./usage-store.ts";

usageStoreContract("SQLite", create);
usageReportsContract("SQLite", create);

function create(): Ledger {
  const connection = new SqliteConnection({ path: ":memory:", busyTimeoutMs: 10 });
  return {
    store: new SqliteUsageStore(connection),
    reports: new SqlUsageReports(connection),
  };
}
