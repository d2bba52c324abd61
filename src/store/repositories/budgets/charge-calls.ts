import { sql } from "kysely";
import { otherEndUsers, partsOfScopeId } from "../../../domain/money/budget.ts";
import type { Calendar } from "../../../domain/money/calendar.ts";
import type { UsageRecord } from "../../../domain/usage/usage.ts";
import type { StoredBudget } from "../../entities.ts";
import { rowsOf } from "../row.ts";
import type { Queries } from "../tables.ts";
import type { EndUserDigests } from "../../../domain/keys/pseudonyms.ts";
import { readBudget } from "./budgets.ts";
import { type JudgedPeriod, noteAlerts } from "./note-alerts.ts";
import { type AddedSpend, addSpend, nextBudgetEpoch } from "./spend.ts";

/** The calls that a transaction has just stored. */
export interface StoredCharges {
  readonly calls: readonly ChargedCall[];
  readonly calendar: Calendar;
  readonly digestsOf: EndUserDigests;
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

interface JudgedSpend extends AddedSpend, JudgedPeriod {
  /** Where an end user may be counted. */
  readonly places: readonly string[];
}

/** Adds calls to the spend of the budgets that they are under, and notes the alerts that this causes. */
export async function chargeCalls(queries: Queries, charges: StoredCharges): Promise<void> {
  const budgets = await findBudgets(queries, charges.calls);
  if (budgets.length === 0) return;
  const sums = addUp(budgets, charges);
  const added = charges.areCorrections === true ? await whereCounted(queries, sums) : sums;
  const judged = [...added, ...refusing(budgets, charges)];
  if (added.length > 0) {
    // A budget was made just now. Batches are stored one at a time, so none waits for another here.
    await addSpend(queries, added, charges.epoch ?? (await nextBudgetEpoch(queries)));
  }
  if (judged.length > 0) await noteAlerts(queries, judged, charges);
}

/** Moves corrections to where their calls count: perhaps under an older pepper, or with all others. */
async function whereCounted(
  queries: Queries,
  sums: readonly JudgedSpend[],
): Promise<readonly JudgedSpend[]> {
  const columns = { at: "bigint", budget_id: "text", period_id: "text", end_user: "text" } as const;
  const asked = sums.flatMap(({ budgetId, periodId, places }, index) =>
    places.map((each) => [index, budgetId, periodId, each]),
  );
  const { rows } = await sql<{ at: number; endUser: string }>`
    select distinct at, end_user
    from ${rowsOf(columns, asked)} join budget_spend using (budget_id, period_id, end_user)`.execute(
    queries,
  );
  const counted = new Set(rows.map(({ at, endUser }) => `${at} ${endUser}`));
  return sums.map((sum, index) => {
    const found = sum.places.find((each) => counted.has(`${index} ${each}`));
    return { ...sum, endUser: found ?? sum.endUser };
  });
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
  { calls, calendar, digestsOf, openAt = 0 }: StoredCharges,
): readonly JudgedSpend[] {
  const byOwner = Map.groupBy(
    budgets,
    ({ keyId, applicationId, accountId }) => keyId ?? applicationId ?? accountId,
  );
  const sums = new Map<string, JudgedSpend>();
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
        // Who is erased has no spend.
        if (budget.eachEndUser === true && call.endUser === undefined) continue;
        const counted = charge?.budgetIds
          .map(partsOfScopeId)
          .find(({ budgetId }) => budgetId === budget.id);
        const process = counted === undefined ? "" : (charge?.process ?? "");
        const places = budget.eachEndUser === true ? [...digestsOf(call), otherEndUsers] : [];
        // As the process counted the call, or else as it is stored.
        const endUser = counted?.endUser ?? places[0] ?? "";
        const name = `${budget.id} ${period.id} ${endUser} ${process}`;
        let sum = sums.get(name);
        if (sum === undefined) {
          const endsAt = Number.isFinite(period.endsAt) ? period.endsAt : null;
          const of = { budget, budgetId: budget.id, periodId: period.id, endUser, process, endsAt };
          sums.set(name, (sum = { ...of, places, spentNano: 0, unpricedCalls: 0 }));
        }
        if (costNano === undefined) sum.unpricedCalls += 1;
        else sum.spentNano += costNano;
        sum.unpricedCalls += unpricedCalls;
      }
    }
  }
  return [...sums.values()];
}
