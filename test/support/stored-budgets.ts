import { budgetSchema } from "../../src/control/contract/budgets.ts";
import type { FaultProcess } from "./fault-process.ts";

/** Sets the limit of a budget while processes end and begin. An answer may be lost, and its change made. */
export async function setLimit(gateway: FaultProcess, id: string, limitUsd: string): Promise<void> {
  const path = `/admin/v1/budgets/${id}`;
  for (;;) {
    const shown = await gateway.admin("GET", path).catch(() => undefined);
    if (shown?.status === 200) {
      const { limit_usd, revision } = budgetSchema.parse(await shown.json());
      if (Number(limit_usd) === Number(limitUsd)) return;
      const change = { revision, limit_usd: limitUsd };
      await gateway.admin("PATCH", path, change).catch(() => undefined);
    }
    // Too many wrong attempts would be refused for a while.
    await Bun.sleep(200);
  }
}

/** A budget of an account, as its database has it. */
export interface StoredBudget {
  readonly accountId: string;
  readonly limitNano: number;
  /** Over all periods and processes. */
  readonly spentNano: number;
  /** What the calls of the account cost. */
  readonly rowsNano: number;
}

/** The budgets in the database, of which something is spent. */
export async function storedBudgets(gateway: FaultProcess): Promise<readonly StoredBudget[]> {
  const { connection, spend, control, reports } = gateway.openStores();
  await using _ = connection;
  const rows = new Map<string, number>();
  let after: string | undefined;
  do {
    const filter = { since: 0, until: Number.MAX_SAFE_INTEGER };
    const page = await reports.calls(filter, { limit: 500, after });
    for (const { accountId, costNano = 0 } of page.items) {
      rows.set(accountId, (rows.get(accountId) ?? 0) + costNano);
    }
    after = page.next;
  } while (after !== undefined);
  const found: StoredBudget[] = [];
  for (const { budgetId, byProcess } of (await spend.since(0, 0)).spend) {
    const budget = await control.read(({ budgets }) => budgets.get(budgetId));
    const spentNano = Object.values(byProcess).reduce((sum, nano) => sum + nano, 0);
    const { accountId = "", limitNano = 0 } = budget ?? {};
    found.push({ accountId, limitNano, spentNano, rowsNano: rows.get(accountId) ?? 0 });
  }
  return found;
}
