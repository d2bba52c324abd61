import { usageReportsContract } from "../../../../test/contracts/usage-reports-contract.ts";
import { usageStoreContract } from "../../../../test/contracts/usage-store-contract.ts";
import type { Ledger } from "../../../../test/contracts/usage-fixtures.ts";
import { describeWithPostgres } from "../../../../test/support/postgres-databases.ts";
import { SqlUsageReports } from "../../repositories/usage/usage-reports.ts";
import { PostgresUsageStore } from "./usage-store.ts";

describeWithPostgres(({ connect }) => {
  async function create(): Promise<Ledger> {
    const connection = (await connect()).inLane("usage");
    return {
      store: new PostgresUsageStore(connection),
      reports: new SqlUsageReports(connection),
    };
  }

  usageStoreContract("PostgreSQL", create);
  usageReportsContract("PostgreSQL", create);
});
