import type { BudgetView } from "../../api/contract.ts";
import { AppLink } from "../../parts/button.tsx";

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

/** Whose calls it covers, and of which model. */
export function BudgetScope({
  budget,
  hasAccount,
}: {
  readonly budget: BudgetView;
  readonly hasAccount: boolean;
}) {
  const { account, account_id: id, application, key_id: key, model } = budget;
  const whose = application ?? (key === null ? "all keys" : "");
  return (
    <>
      {hasAccount && <AppLink to={`/accounts/${id}`}>{account}</AppLink>} {whose}{" "}
      {key !== null && (
        <AppLink to={`/keys/${key}`}>
          <code>{key}</code>
        </AppLink>
      )}
      {model !== null && <span className="muted"> {model} alone</span>}
    </>
  );
}

/** "this key", "application checkout", "account Shop", with the model. */
export function scopeText({ account, application, key_id: key, model }: BudgetView): string {
  const ofApplication = application === null ? `account ${account}` : `application ${application}`;
  const whose = key === null ? ofApplication : "this key";
  return model === null ? whose : `${whose}, ${model} alone`;
}
