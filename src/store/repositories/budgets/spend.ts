import { type RawBuilder, sql } from "kysely";
import {
  mostEndUsers,
  otherEndUsers,
  type PeriodSpend,
  type PeriodTime,
  type SpendNote,
  type StoredSpend,
} from "../../../domain/money/budget.ts";
import type { Calendar } from "../../../domain/money/calendar.ts";
import type { StoredBudget } from "../../entities.ts";
import { namesOf, rowsOf } from "../row.ts";
import type { Queries, SqlConnection } from "../tables.ts";
import type { EndUserDigests } from "../../../domain/keys/pseudonyms.ts";

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

/** What calls add to a budget in a period. */
export interface AddedSpend extends BudgetPeriodKey {
  /** A digest; empty: the budget is not for each end user. */
  readonly endUser: string;
  readonly process: string;
  readonly endsAt: number | null;
  spentNano: number;
  unpricedCalls: number;
}

const spendColumns = {
  budget_id: "text",
  period_id: "text",
  end_user: "text",
  process: "text",
  ends_at: "bigint",
  spent_nano: "bigint",
  unpriced_calls: "bigint",
  changed_epoch: "bigint",
} as const;

export async function addSpend(
  queries: Queries,
  added: readonly AddedSpend[],
  epoch: number,
): Promise<void> {
  const given = rowsOf(
    spendColumns,
    added.map((each) => [
      each.budgetId,
      each.periodId,
      each.endUser,
      each.process,
      each.endsAt,
      each.spentNano,
      each.unpricedCalls,
      epoch,
    ]),
  );
  // What no process counted finds its place here, as in `BudgetTally`.
  const counted = rowsOf(
    { budget_id: "text", period_id: "text" },
    added.flatMap(({ budgetId, periodId, endUser, process }) =>
      endUser === "" || process !== "" ? [] : [[budgetId, periodId]],
    ),
  );
  await sql`
    with counted as (
      select budget_id, period_id, count(distinct end_user) as apart from budget_spend
      where (budget_id, period_id) in (select budget_id, period_id from ${counted})
        and end_user <> ${otherEndUsers}
      group by budget_id, period_id)
    insert into budget_spend (${namesOf(spendColumns)})
    select budget_id, period_id, place, process, ends_at, cast(sum(spent_nano) as bigint),
      cast(sum(unpriced_calls) as bigint), changed_epoch
    from (select given.*, case
      when end_user = '' or process <> '' then end_user
      when exists (select 1 from budget_spend as known where known.budget_id = given.budget_id
        and known.period_id = given.period_id and known.end_user = given.end_user) then end_user
      when coalesce(apart, 0) < ${mostEndUsers} then end_user
      else ${otherEndUsers} end as place
      from ${given} left join counted using (budget_id, period_id)) as placed
    where true group by budget_id, period_id, place, process, ends_at, changed_epoch
    on conflict (budget_id, period_id, end_user, process) do update set
      spent_nano = budget_spend.spent_nano + excluded.spent_nano,
      unpriced_calls = budget_spend.unpriced_calls + excluded.unpriced_calls,
      changed_epoch = excluded.changed_epoch`.execute(queries);
}

/** By the ids of budgets: one period of each, and of each end user the one who spent most. */
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
    select budget_id, spent_nano, unpriced_calls from (
      select budget_id, cast(sum(spent_nano) as bigint) as spent_nano,
        cast(sum(unpriced_calls) as bigint) as unpriced_calls,
        row_number() over (partition by budget_id order by sum(spent_nano) desc) as place
      from ${given} join budget_spend using (budget_id, period_id)
      group by budget_id, end_user) as ranked
    where place = 1`.execute(queries);
  return new Map(rows.map(({ budgetId, ...spend }) => [budgetId, spend]));
}

interface Counting {
  readonly budget: StoredBudget;
  readonly calendar: Calendar;
  readonly epoch: number;
  readonly digestsOf: EndUserDigests;
}

function callsOf({ accountId, applicationId, keyId, model }: StoredBudget): RawBuilder<unknown> {
  return sql.join(
    [
      // The index of the key is the shortest.
      keyId === undefined ? sql`account_id = ${accountId}` : sql`key_id = ${keyId}`,
      ...(applicationId === undefined ? [] : [sql`application_id = ${applicationId}`]),
      ...(model === undefined ? [] : [sql`model = ${model}`]),
    ],
    sql` and `,
  );
}

const hourMs = 3_600_000;

/**
 * Sums up the stored calls of the period in which a new budget begins, and of any later one: clocks may
 * have been set back. Whole hours come from their sums, because a month may have millions of calls.
 */
export async function countStoredCalls(queries: Queries, counting: Counting): Promise<void> {
  const { budget, calendar, epoch } = counting;
  const { id, createdAt } = budget;
  const isUnder = callsOf(budget);
  const callsIn = (since: number, until: number) => sql`
    select coalesce(repriced_nano, cost_nano) as nano,
      case when coalesce(repriced_nano, cost_nano) is null then 1 else 0 end as unpriced
    from usage where ${isUnder} and started_at >= ${since} and started_at < ${until}`;
  for (let at: number | null = createdAt; at !== null;) {
    const period = calendar.periodAt(budget, at);
    const { id: periodId, startsAt, endsAt } = period;
    const until = Math.min(endsAt, Number.MAX_SAFE_INTEGER);
    const hoursSince = Math.ceil(startsAt / hourMs) * hourMs;
    const hoursUntil = Math.max(hoursSince, Math.floor(until / hourMs) * hourMs);
    const ofAll = sql`
      insert into budget_spend (budget_id, period_id, end_user, process, ends_at, spent_nano, unpriced_calls, changed_epoch)
      select ${id}, ${periodId}, '', '', cast(${until === endsAt ? endsAt : null} as bigint),
        cast(coalesce(sum(nano), 0) as bigint), cast(coalesce(sum(unpriced), 0) as bigint),
        cast(${epoch} as bigint)
      from (
        ${callsIn(startsAt, Math.min(hoursSince, until))}
        union all
        select cost_nano, unpriced_calls from usage_groups join usage_sums on group_id = usage_groups.id
        where ${isUnder} and grain = 'hour' and at >= ${hoursSince} and at < ${hoursUntil}
        union all
        ${callsIn(hoursUntil, until)}
      ) as counted`;
    if (budget.eachEndUser === true) await countEndUsers(queries, counting, period);
    else await ofAll.execute(queries);
    const later = await sql<{ at: number | null }>`
      select min(started_at) as at from usage where ${isUnder} and started_at >= ${until}`.execute(
      queries,
    );
    at = later.rows[0]?.at ?? null;
  }
}

/** Only calls know end users, not their sums: so many are read, the newest. */
const mostCallsRead = 1_000_000;

/** Those who spent most are counted apart. */
async function countEndUsers(
  queries: Queries,
  { budget, epoch, digestsOf }: Counting,
  { id: periodId, startsAt, endsAt }: PeriodTime,
): Promise<void> {
  const { id: budgetId, accountId } = budget;
  const { rows } = await sql<PeriodSpend & { endUser: string | null }>`
    select end_user, cast(sum(spent) as bigint) as spent_nano,
      cast(sum(unpriced) as bigint) as unpriced_calls
    from (
      select case when place <= ${mostEndUsers} then end_user end as end_user, spent, unpriced
      from (
        select end_user, coalesce(sum(nano), 0) as spent, count(*) - count(nano) as unpriced,
          row_number() over (order by coalesce(sum(nano), 0) desc) as place
        from (
          select end_user, coalesce(repriced_nano, cost_nano) as nano from usage
          where ${callsOf(budget)} and started_at >= ${startsAt} and started_at < ${endsAt}
          order by started_at desc limit ${mostCallsRead}) as counted
        where end_user is not null group by end_user) as ranked) as placed
    group by end_user`.execute(queries);
  const added = rows.map(({ endUser, ...spend }): AddedSpend => {
    const [own = ""] = endUser === null ? [otherEndUsers] : digestsOf({ accountId, endUser });
    return { budgetId, periodId, process: "", endsAt, endUser: own, ...spend };
  });
  if (added.length > 0) await addSpend(queries, added, epoch);
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
        const changed = sql`select budget_id, period_id, end_user from budget_spend where changed_epoch > ${start}`;
        const { rows } = await sql<StoredSpend & { process: string; spentNano: number }>`
          select case end_user when '' then budget_id else budget_id || '/' || end_user end as budget_id,
            period_id, process, spent_nano
          from budget_spend
          where (budget_id, period_id, end_user) in (${changed})
            and (ends_at is null or ends_at > ${now - readAfterEndMs})
          order by 1, period_id`.execute(queries);
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
