import { sql } from "kysely";
import { Calendar } from "../../../domain/money/calendar.ts";
import { type Budget, isReached, type PeriodSpend } from "../../../domain/money/budget.ts";
import type { StoredBudget } from "../../entities.ts";
import { bumpKeys } from "../control/key-epochs.ts";
import { type EntitySpec, EntityTable, equals } from "../entity-table.ts";
import type { EndUserDigests } from "../../../domain/keys/pseudonyms.ts";
import { present } from "../row.ts";
import type { BudgetRow, Queries } from "../tables.ts";
import { noteAlerts } from "./note-alerts.ts";
import { countStoredCalls, nextBudgetEpoch, spendOf } from "./spend.ts";

interface BudgetFilter {
  readonly accountId?: string | undefined;
  readonly applicationId?: string | undefined;
  readonly keyId?: string | undefined;
}

const spec: EntitySpec<StoredBudget, BudgetRow, BudgetFilter> = {
  table: "budgets",
  select: (queries) => queries.selectFrom("budgets").selectAll(),
  fixed: [
    "accountId",
    "applicationId",
    "keyId",
    "model",
    "eachEndUser",
    "period",
    "timeZone",
    "setBy",
  ],
  write: ({ alerts, eachEndUser = false, ...columns }) => ({
    ...columns,
    eachEndUser: Number(eachEndUser),
    alerts: JSON.stringify(alerts),
  }),
  read: readBudget,
  conditions: ({ accountId, applicationId, keyId }) => [
    equals("budgets.keyId", keyId),
    equals("budgets.applicationId", applicationId),
    equals("budgets.accountId", accountId),
  ],
};

export function readBudget({ alerts, eachEndUser, ...row }: BudgetRow): StoredBudget {
  const thresholds: unknown = JSON.parse(alerts);
  if (!Array.isArray(thresholds)) throw new Error("the database contains an invalid list");
  return { ...present(row), eachEndUser: eachEndUser === 1, alerts: thresholds.map(Number) };
}

/** What processes decide by, without what is only managed. */
export function readPlainBudget(row: BudgetRow): Budget {
  const { alerts: _alerts, note: _note, revision: _revision, ...budget } = readBudget(row);
  return budget;
}

/** A budget with what is spent of it in its current period. */
export interface BudgetState extends PeriodSpend {
  readonly budget: StoredBudget;
}

interface BudgetCounts {
  readonly ofOwner: number;
  readonly forEach: number;
}

/** Every change reaches the processes that count, and waits for calls that are being stored. */
export class Budgets extends EntityTable<StoredBudget, BudgetRow, BudgetFilter> {
  readonly #calendar = new Calendar();
  readonly #digestsOf: EndUserDigests;

  constructor(queries: Queries, digestsOf: EndUserDigests) {
    super(spec, queries);
    this.#digestsOf = digestsOf;
  }

  /** Counts the stored calls of its period. */
  override async insert(budget: StoredBudget): Promise<void> {
    const { queries } = this;
    const epoch = await nextBudgetEpoch(queries);
    await super.insert(budget);
    const terms = { calendar: this.#calendar, digestsOf: this.#digestsOf };
    await countStoredCalls(queries, { budget, epoch, ...terms });
    await tellKeys(queries, budget);
  }

  /** A higher limit makes the alerts that are no longer reached possible again. */
  override async update(budget: StoredBudget): Promise<StoredBudget> {
    const { queries } = this;
    await nextBudgetEpoch(queries);
    const before = await this.get(budget.id);
    const after = await super.update(budget);
    if (before !== undefined && before.limitNano < after.limitNano) await rearm(queries, after);
    const isChanged = before?.mode !== after.mode || before.limitNano !== after.limitNano;
    if (isChanged && (before?.mode === "refuse" || after.mode === "refuse")) {
      await tellKeys(queries, { ...after, mode: "refuse" });
    }
    return after;
  }

  /** Notes what the limit of a new or changed budget makes reached already. */
  async judge(budget: StoredBudget, now: number): Promise<void> {
    const { id: periodId } = this.#calendar.periodAt(budget, now);
    await noteAlerts(this.queries, [{ budget, periodId }], { now, areCorrections: true });
  }

  override async delete(id: string): Promise<boolean> {
    const { queries } = this;
    await nextBudgetEpoch(queries);
    const before = await this.get(id);
    if (before === undefined) return false;
    await super.delete(id);
    await queries.deleteFrom("budgetSpend").where("budgetId", "=", id).execute();
    await queries.deleteFrom("budgetAlerts").where("budgetId", "=", id).execute();
    await tellKeys(queries, before);
    return true;
  }

  /** Removes those of an account or an application that is about to go; returns their ids. */
  async removeOf(owner: BudgetFilter): Promise<readonly string[]> {
    const removed: string[] = [];
    for (;;) {
      const { items, next } = await this.list(owner, { limit: 200 });
      for (const { id } of items) await this.delete(id);
      removed.push(...items.map(({ id }) => id));
      if (next === undefined) return removed;
    }
  }

  /** How many the same side has set: for exactly this owner, and for each end user in the account. */
  async count({ accountId, applicationId, keyId, setBy }: Budget): Promise<BudgetCounts> {
    const { rows } = await sql<BudgetCounts>`
      select count(case when coalesce(application_id, '') = ${applicationId ?? ""}
          and coalesce(key_id, '') = ${keyId ?? ""} then 1 end) as of_owner,
        count(case when each_end_user = 1 then 1 end) as for_each
      from budgets where account_id = ${accountId} and set_by = ${setBy}`.execute(this.queries);
    return rows[0] ?? { ofOwner: 0, forEach: 0 };
  }

  /** What is spent in the current periods, in the order of the budgets. */
  async states(budgets: readonly StoredBudget[], now: number): Promise<readonly BudgetState[]> {
    const periods = budgets.map((budget) => ({
      budgetId: budget.id,
      periodId: this.#calendar.periodAt(budget, now).id,
    }));
    const spend = await spendOf(this.queries, periods);
    const none: PeriodSpend = { spentNano: 0, unpricedCalls: 0 };
    return budgets.map((budget) => ({ budget, ...(spend.get(budget.id) ?? none) }));
  }

  /** All budgets that calls of a key can be under. */
  async ofKey(key: {
    readonly id: string;
    readonly applicationId: string;
    readonly accountId: string;
  }): Promise<readonly StoredBudget[]> {
    const { rows } = await sql<BudgetRow>`
      select * from budgets where account_id = ${key.accountId} and key_id is null
        and (application_id is null or application_id = ${key.applicationId})
      union all
      select * from budgets where key_id = ${key.id}
      order by created_at, id`.execute(this.queries);
    return rows.map(readBudget);
  }
}

/** Budgets that only warn concern no process that serves calls. */
async function tellKeys(queries: Queries, budget: Budget): Promise<void> {
  if (budget.mode !== "refuse") return;
  if (budget.keyId !== undefined) await bumpKeys(queries, "id", budget.keyId);
  else if (budget.applicationId !== undefined) {
    await bumpKeys(queries, "applicationId", budget.applicationId);
  } else await bumpKeys(queries, "accountId", budget.accountId);
}

/** In all periods: calls of an earlier one may still be stored. */
async function rearm(queries: Queries, budget: StoredBudget): Promise<void> {
  const { rows } = await sql<{ periodId: string; threshold: number; spentNano: number }>`
    select period_id, threshold, (
      select cast(sum(spent_nano) as bigint) from budget_spend
      where budget_spend.budget_id = budget_alerts.budget_id
        and budget_spend.period_id = budget_alerts.period_id) as spent_nano
    from budget_alerts where budget_id = ${budget.id} and is_rearmed = 0`.execute(queries);
  for (const { periodId, threshold, spentNano } of rows) {
    if (isReached(budget, threshold, spentNano)) continue;
    await queries
      .updateTable("budgetAlerts")
      .set({ isRearmed: 1 })
      .where("budgetId", "=", budget.id)
      .where("periodId", "=", periodId)
      .where("threshold", "=", threshold)
      .where("isRearmed", "=", 0)
      .execute();
  }
}
