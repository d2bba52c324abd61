import type { BudgetView } from "../../api/contract.ts";

const names = {
  month: "Month",
  week: "Week, from Monday",
  day: "Day",
  total: "In all, from now on",
};

export const periods = Object.entries(names).map(([value, label]) => ({ value, label }));

export function periodOf(text: string): BudgetView["period"] {
  return text === "week" || text === "day" || text === "total" ? text : "month";
}

/** "2026-11, UTC". */
export function periodText({ period, state, time_zone: zone }: BudgetView): string {
  return period === "total" ? "in all" : `${period} ${state.period_id}, ${zone}`;
}

export function setByText({ set_by: by }: Pick<BudgetView, "set_by">): string {
  return by === "operator" ? "an operator" : "the account holder";
}

/** Whose calls it covers: "application checkout, alpha-sonnet-4 alone". */
export function scopeText(budget: BudgetView): string {
  const { application, key_id: key, model, each_end_user: isForEach } = budget;
  const ofApplication = application === null ? "all keys" : `application ${application}`;
  const whose = key === null ? ofApplication : `key ${key}`;
  const ofModel = model === null ? whose : `${whose}, ${model} alone`;
  return isForEach ? `${ofModel}: each end user, here who spent most` : ofModel;
}
