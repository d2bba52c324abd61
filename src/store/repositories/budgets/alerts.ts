import { type RawBuilder, sql } from "kysely";
import type { BudgetAlert } from "../../store.ts";
import { rowsOf } from "../row.ts";
import type { AlertRow, BudgetRow, Queries } from "../tables.ts";
import { readPlainBudget } from "./budgets.ts";

/** The alerts of calls behind one place in the order of storing and up to another. */
export function alertsBetween(
  queries: Queries,
  { after, until }: { readonly after: number; readonly until: number },
): Promise<readonly BudgetAlert[]> {
  return findAlerts(queries, sql`call_sequence > ${after} and call_sequence <= ${until}`);
}

/** The alerts that were noted since the call before the first of these was stored, up to the last. */
export async function alertsOfCalls(
  queries: Queries,
  ids: readonly string[],
): Promise<readonly BudgetAlert[]> {
  const given = rowsOf(
    { id: "text" },
    ids.map((id) => [id]),
  );
  const places = await sql<{ first: number | null; until: number | null }>`
    select min(sequence) as first, max(sequence) as until from ${given} join usage using (id)`.execute(
    queries,
  );
  const { first = null, until = null } = places.rows[0] ?? {};
  if (first === null || until === null) return [];
  const before = await sql<{ after: number | null }>`
    select max(sequence) as after from usage where sequence < ${first}`.execute(queries);
  return alertsBetween(queries, { after: before.rows[0]?.after ?? 0, until });
}

type FoundRow = BudgetRow &
  Pick<AlertRow, "periodId" | "threshold" | "callSequence" | "spentNano"> & {
    readonly notedAt: number;
    readonly notedMode: AlertRow["mode"];
    readonly notedLimitNano: number;
  };

/** Percentages that were reached at once are one alert. */
async function findAlerts(
  queries: Queries,
  where: RawBuilder<unknown>,
): Promise<readonly BudgetAlert[]> {
  const { rows } = await sql<FoundRow>`
    select budgets.*, period_id, threshold, call_sequence, spent_nano, at as noted_at,
      budget_alerts.mode as noted_mode, budget_alerts.limit_nano as noted_limit_nano
    from budget_alerts join budgets on budgets.id = budget_id
    where ${where} order by call_sequence, budget_id, period_id, threshold`.execute(queries);
  const alerts = new Map<string, BudgetAlert>();
  for (const row of rows) {
    const { periodId, threshold, callSequence, spentNano, notedAt: at, ...rest } = row;
    const { notedMode: mode, notedLimitNano: limitNano, ...budget } = rest;
    const id = `${budget.id}.${periodId}.${callSequence}`;
    const thresholds = [...(alerts.get(id)?.thresholds ?? []), threshold];
    const of = { ...readPlainBudget(budget), mode, limitNano };
    alerts.set(id, { id, budget: of, periodId, thresholds, at, spentNano });
  }
  return [...alerts.values()];
}
