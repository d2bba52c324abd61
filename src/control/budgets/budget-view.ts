import type { Budget, PeriodSpend, PeriodTime } from "../../domain/money/budget.ts";
import { Calendar } from "../../domain/money/calendar.ts";
import { usdOfNano } from "../../domain/money/usd.ts";
import type { Clock } from "../../domain/clock.ts";
import type { StoredBudget } from "../../store/entities.ts";
import type { ControlView } from "../../store/repositories/control-store.ts";
import { budgetSchema } from "../contract/budgets.ts";
import { timeText, viewAs } from "../values/api-form.ts";
import { readAccountNames, readOnce } from "../values/read-once.ts";

/** Shows budgets with what is spent of them; names are looked up once. */
export function showBudgets(view: ControlView, clock: Pick<Clock, "now">) {
  const accountName = readAccountNames(view);
  const applicationName = readOnce(async (id) => (await view.applications.get(id))?.name ?? "");
  const calendar = new Calendar();
  return async (budget: StoredBudget) => {
    const { accountId, applicationId, limitNano } = budget;
    const now = clock.now();
    const spend = (await view.budgets.states([budget], now))[0] ?? nothingSpent;
    return viewAs(budgetSchema, budget, {
      account: await accountName(accountId),
      application: applicationId === undefined ? null : await applicationName(applicationId),
      limit_usd: usdOfNano(limitNano),
      state: viewState(budget, { spend, period: calendar.periodAt(budget, now), now }),
    });
  };
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

/** A total that lasts longer at its pace has no end that matters. */
const longestMs = 10 * 365 * 86_400_000;

function runsOutAt(limitNano: number, { spend, period, now }: BudgetNow): number | undefined {
  const { spentNano } = spend;
  const elapsedMs = now - period.startsAt;
  if (spentNano === 0 || spentNano >= limitNano || elapsedMs <= 0) return undefined;
  const at = Math.floor(period.startsAt + (elapsedMs / spentNano) * limitNano);
  return at < Math.min(period.endsAt, now + longestMs) ? at : undefined;
}
