import { afterEach } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { budgetContract, type OpenGateways } from "../../../../test/contracts/budget-contract.ts";
import { endUserBudgetContract } from "../../../../test/contracts/end-user-budget-contract.ts";
import { openStores } from "../../sqlite/open-stores.ts";
import { testPeppers } from "../../../../test/support/test-peppers.ts";

const ends: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});

const openGateways: OpenGateways = async (count, clock) => {
  const folder = mkdtempSync(join(tmpdir(), "budgets-"));
  const all = Array.from({ length: count }, () =>
    openStores(join(folder, "sluice.db"), clock, { peppers: testPeppers("test", "older") }),
  );
  ends.push(async () => {
    for (const { connection } of all) await connection.close();
    rmSync(folder, { recursive: true });
  });
  return all;
};

budgetContract("SQLite", openGateways);
endUserBudgetContract("SQLite", openGateways);
