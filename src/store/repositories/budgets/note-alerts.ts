import { sql } from "kysely";
import { isReached } from "../../../domain/money/budget.ts";
import type { StoredBudget } from "../../entities.ts";
import { namesOf, rowsOf } from "../row.ts";
import type { Queries } from "../tables.ts";
import { spendOf } from "./spend.ts";

/** A budget in a period of which more is spent, or that has refused a call, or whose limit is new. */
export interface JudgedPeriod {
  readonly budget: StoredBudget;
  readonly periodId: string;
  /** It had too little left for a call: that is told as 100 percent, which it may never reach. */
  readonly isRefusing?: boolean;
}

interface JudgedAt {
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** Whether no call was stored with it: the alerts then follow the next one that is. */
  readonly areCorrections?: boolean;
}

/** Judges what is spent now, all thresholds at once. The store keeps each to once in a period. */
export async function noteAlerts(
  queries: Queries,
  judged: readonly JudgedPeriod[],
  { now, areCorrections = false }: JudgedAt,
): Promise<void> {
  const noted: (readonly (string | number)[])[] = [];
  const alerting = judged.filter(({ budget }) => budget.alerts.length > 0);
  for (const [periodId, ofPeriod] of Map.groupBy(alerting, (each) => each.periodId)) {
    const ids = new Set(ofPeriod.map(({ budget }) => budget.id));
    const periods = Array.from(ids, (budgetId) => ({ budgetId, periodId }));
    const spend = await spendOf(queries, periods);
    for (const { budget, isRefusing = false } of ofPeriod) {
      const { id, alerts, mode, limitNano } = budget;
      const spentNano = spend.get(id)?.spentNano ?? 0;
      const reached = new Set(alerts.filter((each) => isReached(budget, each, spentNano)));
      if (isRefusing) reached.add(100);
      for (const threshold of reached) {
        noted.push([id, periodId, threshold, now, mode, limitNano, spentNano]);
      }
    }
  }
  if (noted.length === 0) return;
  const columns = namesOf(alertColumns);
  await sql`
    insert into budget_alerts (${columns}, is_rearmed, call_sequence)
    select ${columns}, 0,
      coalesce((select max(sequence) from usage), 0) + cast(${Number(areCorrections)} as bigint)
    from ${rowsOf(alertColumns, noted)} where true on conflict do nothing`.execute(queries);
}

const alertColumns = {
  budget_id: "text",
  period_id: "text",
  threshold: "bigint",
  at: "bigint",
  mode: "text",
  limit_nano: "bigint",
  spent_nano: "bigint",
} as const;
