import type { KeyView } from "../../api/contract.ts";
import { useList } from "../../api/use-read.ts";
import { AppLink } from "../../parts/button.tsx";
import { usdText } from "../../parts/money.tsx";
import { LimitBar } from "../../parts/numbers.tsx";
import { Loaded } from "../../parts/page.tsx";
import { periodText, scopeText, setByText } from "./budget-words.ts";

/** The budgets that the calls of a key are under: its own, its application's, its account's. */
export function BudgetsOfKey({ view }: { readonly view: KeyView }) {
  const { id, account_id: account, application_id: application } = view;
  const budgets = useList("/budgets", { account_id: account, limit: 500 });
  return (
    <Loaded query={budgets.query}>
      {(all) => {
        const own = all.filter(
          (each) =>
            (each.key_id === null || each.key_id === id) &&
            (each.application_id === null || each.application_id === application),
        );
        return (
          <div className="stack">
            {own.length === 0 && <p>No budget limits what they may cost.</p>}
            <div className="grid">
              {own.map((budget) => (
                <LimitBar
                  key={budget.id}
                  name={`${scopeText(budget)}, ${periodText(budget)}`}
                  used={Number(budget.state.spent_usd)}
                  limit={Number(budget.limit_usd)}
                  setBy={setByText(budget)}
                  format={usdText}
                />
              ))}
            </div>
            <p>
              <AppLink to="/budgets" own={{ key: id }}>
                Budgets of this key
              </AppLink>
            </p>
          </div>
        );
      }}
    </Loaded>
  );
}
