import type { Budget, PeriodSpend, PeriodTime } from "../../domain/money/budget.ts";
import { Calendar } from "../../domain/money/calendar.ts";
import { usdOfNano } from "../../domain/money/usd.ts";
import type { Clock } from "../../domain/clock.ts";
import type { LiveFacts } from "../../domain/live-facts.ts";
import type { StoredBudget } from "../../store/entities.ts";
import type { ControlView } from "../../store/repositories/control-store.ts";
import { budgetSchema } from "../contract/budgets.ts";
import type { Reading } from "../operation/resource-operations.ts";
import { timeText, viewAs } from "../values/api-form.ts";
import { readAccountNames, readOnce } from "../values/read-once.ts";

/** Shows budgets with what is spent of them, which is read once, as names are. */
export function showBudgets(
  view: ControlView,
  clock: Pick<Clock, "now">,
  reading?: Reading<StoredBudget>,
) {
  const accountName = readAccountNames(view);
  const applicationName = readOnce(async (id) => (await view.applications.get(id))?.name ?? "");
  const calendar = new Calendar();
  const now = clock.now();
  const states = reading && view.budgets.states(reading.listed, now);
  return async (budget: StoredBudget) => {
    const { accountId, applicationId, eachEndUser: isForEach = false, limitNano } = budget;
    const known = await (states ?? view.budgets.states([budget], now));
    const spend = known.find((state) => state.budget.id === budget.id) ?? nothingSpent;
    const period = calendar.periodAt(budget, now);
    const reserved = reservedOf(
      `${budget.id} ${period.id}`,
      isForEach ? undefined : reading?.facts,
    );
    return viewAs(budgetSchema, budget, {
      account: await accountName(accountId),
      application: applicationId === undefined ? null : await applicationName(applicationId),
      each_end_user: isForEach,
      limit_usd: usdOfNano(limitNano),
      state: { ...viewState(budget, { spend, period, now }), reserved_usd: reserved },
    });
  };
}

/** Of the processes of this machine. */
function reservedOf(key: string, facts: readonly LiveFacts[] | undefined): string | null {
  if (facts === undefined) return null;
  const sums = facts.map(({ reservedNano }) => reservedNano?.[key] ?? 0);
  return usdOfNano(sums.reduce((sum, nano) => sum + nano, 0));
}

const nothingSpent: PeriodSpend = { spentNano: 0, unpricedCalls: 0 };

interface BudgetNow {
  readonly spend: PeriodSpend;
  readonly period: PeriodTime;
  readonly now: number;
}

function viewState({ limitNano }: Pick<Budget, "limitNano">, { spend, period, now }: BudgetNow) {
  const { spentNano, unpricedCalls } = spend;
  return {
    period_id: period.id,
    starts_at: timeText(period.startsAt),
    ends_at: Number.isFinite(period.endsAt) ? timeText(period.endsAt) : null,
    spent_usd: usdOfNano(spentNano),
    left_usd: usdOfNano(Math.max(0, limitNano - spentNano)),
    percent: Number((BigInt(spentNano) * 100n) / BigInt(limitNano)),
    runs_out_at: timeText(runsOutAt(limitNano, { spend, period, now })),
    unpriced_calls: unpricedCalls,
  };
}

const dayMs = 86_400_000;
/** A total that lasts longer at its pace has no end that matters. */
const longestMs = 10 * 365 * dayMs;
/** Of the period, or a day: the pace of a shorter time says nothing. */
const leastElapsed = 0.05;

function runsOutAt(limitNano: number, { spend, period, now }: BudgetNow): number | undefined {
  const { spentNano } = spend;
  const elapsedMs = now - period.startsAt;
  const leastMs = Math.min(dayMs, leastElapsed * (period.endsAt - period.startsAt));
  if (spentNano === 0 || spentNano >= limitNano || elapsedMs < leastMs) return undefined;
  const at = Math.floor(period.startsAt + (elapsedMs / spentNano) * limitNano);
  return at < Math.min(period.endsAt, now + longestMs) ? at : undefined;
}
