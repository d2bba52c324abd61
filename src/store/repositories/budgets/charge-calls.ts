import { sql } from "kysely";
import type { Calendar } from "../../../domain/money/calendar.ts";
import type { UsageRecord } from "../../../domain/usage/usage.ts";
import type { StoredBudget } from "../../entities.ts";
import { namesOf, rowsOf } from "../row.ts";
import type { Queries } from "../tables.ts";
import { readBudget } from "./budgets.ts";
import { type JudgedPeriod, noteAlerts } from "./note-alerts.ts";
import { type BudgetPeriodKey, nextBudgetEpoch } from "./spend.ts";

/** The calls that a transaction has just stored. */
export interface StoredCharges {
  readonly calls: readonly ChargedCall[];
  readonly calendar: Calendar;
  /** From `nextBudgetEpoch`, taken before the calls were stored; undefined: no budget was known. */
  readonly epoch: number | undefined;
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** Whether the calls were stored before: alerts then follow the next call that is stored. */
  readonly areCorrections?: boolean;
  /** Set if periods that ended before it stay as they are. */
  readonly openAt?: number | undefined;
}

interface ChargedCall extends UsageRecord {
  /** Of a correction: -1 if it now has a cost. */
  readonly unpricedCalls?: number | undefined;
}

interface AddedSpend extends BudgetPeriodKey, JudgedPeriod {
  readonly process: string;
  readonly endsAt: number | null;
  spentNano: number;
  unpricedCalls: number;
}

/** Adds calls to the spend of the budgets that they are under, and notes the alerts that this causes. */
export async function chargeCalls(queries: Queries, charges: StoredCharges): Promise<void> {
  const budgets = await findBudgets(queries, charges.calls);
  if (budgets.length === 0) return;
  const added = addUp(budgets, charges);
  const judged = [...added, ...refusing(budgets, charges)];
  if (added.length > 0) await addSpend(queries, added, charges);
  if (judged.length > 0) await noteAlerts(queries, judged, charges);
}

async function addSpend(
  queries: Queries,
  added: readonly AddedSpend[],
  charges: StoredCharges,
): Promise<void> {
  // A budget was made just now. Batches are stored one at a time, so none waits for another here.
  const epoch = charges.epoch ?? (await nextBudgetEpoch(queries));
  await sql`
    insert into budget_spend (${namesOf(spendColumns)})
    select ${namesOf(spendColumns)} from ${rowsOf(
      spendColumns,
      added.map((each) => [
        each.budgetId,
        each.periodId,
        each.process,
        each.endsAt,
        each.spentNano,
        each.unpricedCalls,
        epoch,
      ]),
    )} where true
    on conflict (budget_id, period_id, process) do update set
      spent_nano = budget_spend.spent_nano + excluded.spent_nano,
      unpriced_calls = budget_spend.unpriced_calls + excluded.unpriced_calls,
      changed_epoch = excluded.changed_epoch`.execute(queries);
}

/** Budgets that had too little left for a call. One that was raised since then may have room again. */
function refusing(
  budgets: readonly StoredBudget[],
  { calls, calendar }: StoredCharges,
): readonly JudgedPeriod[] {
  return calls.flatMap(({ refusedBy, startedAt }) => {
    const budget = budgets.find(({ id }) => id === refusedBy?.id);
    if (budget === undefined || budget.limitNano > (refusedBy?.limitNano ?? 0)) return [];
    const { id: periodId } = calendar.periodAt(budget, startedAt);
    return [{ budget, periodId, isRefusing: true }];
  });
}

const spendColumns = {
  budget_id: "text",
  period_id: "text",
  process: "text",
  ends_at: "bigint",
  spent_nano: "bigint",
  unpriced_calls: "bigint",
  changed_epoch: "bigint",
} as const;

/** Those that some of the calls may be under: an account may have one for each of many keys. */
export async function findBudgets(
  queries: Queries,
  calls: readonly UsageRecord[],
): Promise<readonly StoredBudget[]> {
  const ids = (of: (call: UsageRecord) => string) =>
    sql`(select id from ${rowsOf(
      { id: "text" },
      [...new Set(calls.map(of))].map((id) => [id]),
    )})`;
  const { rows } = await sql<Parameters<typeof readBudget>[0]>`
    select * from budgets where key_id is null and account_id in ${ids((call) => call.accountId)}
    union all
    select * from budgets where key_id in ${ids((call) => call.keyId)}`.execute(queries);
  return rows.map(readBudget);
}

function addUp(
  budgets: readonly StoredBudget[],
  { calls, calendar, openAt = 0 }: StoredCharges,
): readonly AddedSpend[] {
  const byOwner = Map.groupBy(
    budgets,
    ({ keyId, applicationId, accountId }) => keyId ?? applicationId ?? accountId,
  );
  const sums = new Map<string, AddedSpend>();
  for (const call of calls) {
    const { accountId, applicationId, keyId, costNano, charge, unpricedCalls = 0 } = call;
    // Calls that cost nothing change nothing.
    if (costNano === 0 && unpricedCalls === 0) continue;
    for (const owner of [accountId, applicationId, keyId]) {
      for (const budget of byOwner.get(owner) ?? []) {
        if (budget.model !== undefined && budget.model !== call.model) continue;
        // A budget counts from the beginning of the period in which it was made.
        if (call.startedAt < calendar.periodAt(budget, budget.createdAt).startsAt) continue;
        const period = calendar.periodAt(budget, call.startedAt);
        if (period.endsAt <= openAt) continue;
        const isCounted = charge?.budgetIds.includes(budget.id) === true;
        const process = isCounted ? charge.process : "";
        const name = `${budget.id} ${period.id} ${process}`;
        let sum = sums.get(name);
        if (sum === undefined) {
          const endsAt = Number.isFinite(period.endsAt) ? period.endsAt : null;
          const of = { budget, budgetId: budget.id, periodId: period.id, process, endsAt };
          sums.set(name, (sum = { ...of, spentNano: 0, unpricedCalls: 0 }));
        }
        if (costNano === undefined) sum.unpricedCalls += 1;
        else sum.spentNano += costNano;
        sum.unpricedCalls += unpricedCalls;
      }
    }
  }
  return [...sums.values()];
}
