import { isReached } from "../../domain/money/budget.ts";
import { Calendar } from "../../domain/money/calendar.ts";
import { usdOfNano } from "../../domain/money/usd.ts";
import type { BudgetAlert } from "../../store/store.ts";
import { timeText } from "../values/api-form.ts";

/** The event of an alert. Repeats are equal, so it holds nothing of the budget that may change. */
export function alertEventOf(alert: BudgetAlert) {
  const { id, budget, periodId, thresholds, at, spentNano } = alert;
  const current = new Calendar().periodAt(budget, at);
  // Calls of an earlier period may be stored late; it does not begin anew.
  const resetsAt = current.id === periodId ? current.endsAt : Infinity;
  return {
    type: thresholds.some((threshold) => threshold >= 100)
      ? "budget.exhausted"
      : "budget.threshold",
    data: {
      id,
      at: timeText(at),
      budget_id: budget.id,
      account_id: budget.accountId,
      application_id: budget.applicationId ?? null,
      key_id: budget.keyId ?? null,
      model: budget.model ?? null,
      period: budget.period,
      period_id: periodId,
      resets_at: Number.isFinite(resetsAt) ? timeText(resetsAt) : null,
      mode: budget.mode,
      limit_usd: usdOfNano(budget.limitNano),
      spent_usd: usdOfNano(spentNano),
      // A budget that refuses calls is exhausted, whatever is spent.
      thresholds: thresholds.filter((threshold) => isReached(budget, threshold, spentNano)),
    },
  };
}
