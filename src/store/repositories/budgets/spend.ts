import { sql } from "kysely";
import type { PeriodSpend, SpendNote, StoredSpend } from "../../../domain/money/budget.ts";
import type { Calendar } from "../../../domain/money/calendar.ts";
import type { StoredBudget } from "../../entities.ts";
import { rowsOf } from "../row.ts";
import type { Queries, SqlConnection } from "../tables.ts";

/**
 * The first statement of a transaction that changes budgets, or stores calls. It waits until the one
 * before has ended, so that a new budget counts each call once.
 */
export async function nextBudgetEpoch(queries: Queries): Promise<number> {
  const { value } = await queries
    .updateTable("epochs")
    .set((eb) => ({ value: eb("value", "+", 1) }))
    .where("name", "=", "budgets")
    .returning("value")
    .executeTakeFirstOrThrow();
  return value;
}

export interface BudgetPeriodKey {
  readonly budgetId: string;
  readonly periodId: string;
}

/** By the ids of budgets: one period of each. */
export async function spendOf(
  queries: Queries,
  periods: readonly BudgetPeriodKey[],
): Promise<ReadonlyMap<string, PeriodSpend>> {
  if (periods.length === 0) return new Map();
  const given = rowsOf(
    { budget_id: "text", period_id: "text" },
    periods.map(({ budgetId, periodId }) => [budgetId, periodId]),
  );
  const { rows } = await sql<PeriodSpend & { budgetId: string }>`
    select budget_id, cast(sum(spent_nano) as bigint) as spent_nano,
      cast(sum(unpriced_calls) as bigint) as unpriced_calls
    from ${given} join budget_spend using (budget_id, period_id)
    group by budget_id`.execute(queries);
  return new Map(rows.map(({ budgetId, ...spend }) => [budgetId, spend]));
}

const hourMs = 3_600_000;

/**
 * Sums up the stored calls of the period in which a new budget begins, and of any later one: clocks may
 * have been set back. Whole hours come from their sums, because a month may have millions of calls.
 */
export async function countStoredCalls(
  queries: Queries,
  { budget, calendar, epoch }: { budget: StoredBudget; calendar: Calendar; epoch: number },
): Promise<void> {
  const { id, accountId, applicationId, keyId, model, createdAt } = budget;
  const isUnder = sql.join(
    [
      // The index of the key is the shortest.
      keyId === undefined ? sql`account_id = ${accountId}` : sql`key_id = ${keyId}`,
      ...(applicationId === undefined ? [] : [sql`application_id = ${applicationId}`]),
      ...(model === undefined ? [] : [sql`model = ${model}`]),
    ],
    sql` and `,
  );
  const callsIn = (since: number, until: number) => sql`
    select coalesce(repriced_nano, cost_nano) as nano,
      case when coalesce(repriced_nano, cost_nano) is null then 1 else 0 end as unpriced
    from usage where ${isUnder} and started_at >= ${since} and started_at < ${until}`;
  for (let at: number | null = createdAt; at !== null;) {
    const { id: periodId, startsAt, endsAt } = calendar.periodAt(budget, at);
    const until = Math.min(endsAt, Number.MAX_SAFE_INTEGER);
    const hoursSince = Math.ceil(startsAt / hourMs) * hourMs;
    const hoursUntil = Math.max(hoursSince, Math.floor(until / hourMs) * hourMs);
    await sql`
      insert into budget_spend (budget_id, period_id, process, ends_at, spent_nano, unpriced_calls, changed_epoch)
      select ${id}, ${periodId}, '', cast(${until === endsAt ? endsAt : null} as bigint),
        cast(coalesce(sum(nano), 0) as bigint), cast(coalesce(sum(unpriced), 0) as bigint),
        cast(${epoch} as bigint)
      from (
        ${callsIn(startsAt, Math.min(hoursSince, until))}
        union all
        select cost_nano, unpriced_calls from usage_groups join usage_sums on group_id = usage_groups.id
        where ${isUnder} and grain = 'hour' and at >= ${hoursSince} and at < ${hoursUntil}
        union all
        ${callsIn(hoursUntil, until)}
      ) as counted`.execute(queries);
    const later = await sql<{ at: number | null }>`
      select min(started_at) as at from usage where ${isUnder} and started_at >= ${until}`.execute(
      queries,
    );
    at = later.rows[0]?.at ?? null;
  }
}

/** How long after its end a period is still of interest: calls of it may run. */
const readAfterEndMs = 86_400_000;

type SpendSince = Pick<SpendNote, "epoch" | "isWhole" | "spend">;

export type SpendStore = ReturnType<typeof spendIn>;

/** The stored spend, for the processes that count. */
export function spendIn(connection: Pick<SqlConnection, "read">) {
  return {
    /** What changed since an epoch; 0: all. Throws `StorageUnavailable`. */
    since(since: number, now: number): Promise<SpendSince> {
      return connection.read(async (queries) => {
        const row = queries.selectFrom("epochs").select("value").where("name", "=", "budgets");
        const epoch = (await row.executeTakeFirst())?.value ?? 0;
        // An older database was restored, so all is read again.
        const start = since > epoch ? 0 : since;
        if (start === epoch && epoch > 0) return { epoch, isWhole: false, spend: [] };
        const changed = sql`select budget_id, period_id from budget_spend where changed_epoch > ${start}`;
        const { rows } = await sql<StoredSpend & { process: string; spentNano: number }>`
          select budget_id, period_id, process, spent_nano from budget_spend
          where (budget_id, period_id) in (${changed})
            and (ends_at is null or ends_at > ${now - readAfterEndMs})
          order by budget_id, period_id`.execute(queries);
        return { epoch, isWhole: start === 0, spend: groupSpend(rows) };
      });
    },
  };
}

function groupSpend(
  rows: readonly (BudgetPeriodKey & { process: string; spentNano: number })[],
): readonly StoredSpend[] {
  const found: (BudgetPeriodKey & { byProcess: Record<string, number> })[] = [];
  for (const { budgetId, periodId, process, spentNano } of rows) {
    let last = found.at(-1);
    if (last?.budgetId !== budgetId || last.periodId !== periodId) {
      last = { budgetId, periodId, byProcess: {} };
      found.push(last);
    }
    last.byProcess[process] = spentNano;
  }
  return found;
}
