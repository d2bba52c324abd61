import type { BudgetView } from "../../api/contract.ts";
import { useList } from "../../api/use-read.ts";
import { Badge } from "../../parts/badge.tsx";
import { AppLink, Button } from "../../parts/button.tsx";
import { Chip } from "../../parts/chip.tsx";
import { Ask, Closing } from "../../parts/dialog.tsx";
import { Empty } from "../../parts/error-note.tsx";
import { ChangeDialog } from "../../parts/form.tsx";
import { Listing } from "../../parts/listing.tsx";
import { Cost, usdText } from "../../parts/money.tsx";
import { LimitBar } from "../../parts/numbers.tsx";
import { Page } from "../../parts/page.tsx";
import type { Column } from "../../parts/table.tsx";
import { Time } from "../../parts/time.tsx";
import { useMayChange, useRole, useSeesAll } from "../../shell/role.ts";
import { useUrl } from "../../url.ts";
import { ChangeBudget, CreateBudget } from "./budget-forms.tsx";
import { periodText, scopeText, setByText } from "./budget-words.ts";

/** How much is left, until when, at this pace? */
export function BudgetsPage() {
  const [url, change] = useUrl({ account: "", application: "", key: "", create: "" });
  const ofAll = useSeesAll();
  const mayChange = useMayChange();
  const budgets = useList("/budgets", {
    account_id: url.account,
    application_id: url.application,
    key_id: url.key,
  });
  const isFiltered = url.account !== "" || url.application !== "" || url.key !== "";
  const [first] = budgets.query.data ?? [];
  const create = mayChange && (
    <Button look="primary" onPress={() => change({ create: "budget" })}>
      Create budget
    </Button>
  );
  return (
    <Page title="Budgets" question="How much is left, until when, at this pace?" actions={create}>
      <div className="row">
        <Chip param="account" name="Account" text={first?.account} />
        <Chip param="application" name="Application" text={first?.application} />
        <Chip param="key" name="Key" />
      </div>
      <Listing
        list={{ ...budgets, query: { ...budgets.query, data: worstFirst(budgets.query.data) } }}
        caption="Budgets"
        columns={mayChange ? [...columnsFor(ofAll), actions] : columnsFor(ofAll)}
        idOf={({ id }) => id}
        empty={
          <Empty
            sentence={
              isFiltered
                ? "No budget is of this alone."
                : "No budget limits what calls may cost here."
            }
            action={create}
            command="sluice budgets create --account ACCOUNT --limit-usd 5 --period month"
          />
        }
      />
      {mayChange && url.create !== "" && (
        <Closing value={() => change({ create: "" })}>
          <CreateBudget />
        </Closing>
      )}
    </Page>
  );
}

function worstFirst(budgets: readonly BudgetView[] | undefined) {
  return budgets?.toSorted((one, other) => other.state.percent - one.state.percent);
}

function columnsFor(ofAll: boolean): readonly Column<BudgetView>[] {
  return [
    [
      "Of",
      (budget) => (
        <>
          {ofAll && <AppLink to={`/accounts/${budget.account_id}`}>{budget.account}</AppLink>}
          <p>{scopeText(budget)}</p>
        </>
      ),
    ],
    ["Spent", (budget) => <Spent budget={budget} />],
    ["Left", ({ state }) => <Cost usd={state.left_usd} />, "number"],
    [
      "Until",
      (budget) => (
        <>
          <Time at={budget.state.ends_at} none="for ever" />
          <p>
            <Pace budget={budget} />
          </p>
        </>
      ),
    ],
    ["Beyond it", ({ mode }) => (mode === "refuse" ? "calls are refused" : "events tell"), "wide"],
  ];
}

function Spent({ budget }: { readonly budget: BudgetView }) {
  const { spent_usd: spent, unpriced_calls: unpriced } = budget.state;
  return (
    <>
      <LimitBar
        name={periodText(budget)}
        used={Number(spent)}
        limit={Number(budget.limit_usd)}
        setBy={setByText(budget)}
        format={usdText}
      />
      {unpriced > 0 && (
        <p className="small">
          <Cost usd={spent} unpricedCalls={unpriced} />: {unpriced} of the calls have no price.
        </p>
      )}
    </>
  );
}

/** When it is spent, if spending goes on as in this period so far. */
function Pace({ budget: { state, mode } }: { readonly budget: BudgetView }) {
  const { percent, runs_out_at: at, starts_at: start, ends_at: end } = state;
  if (percent >= 100) {
    return <Badge tone={mode === "refuse" ? "bad" : "warn"}>spent</Badge>;
  }
  if (at === null && isEarly(start, end)) return <span className="muted">too early to say</span>;
  if (at === null) return <Badge tone="ok">{end === null ? "lasts" : "lasts until then"}</Badge>;
  return (
    <>
      <Badge tone="warn">runs out</Badge> <Time at={at} />
    </>
  );
}

const dayMs = 86_400_000;

/** As in the API, which then tells no pace. */
function isEarly(start: string, end: string | null): boolean {
  const since = Date.parse(start);
  const lengthMs = end === null ? Infinity : Date.parse(end) - since;
  return Date.now() - since < Math.min(dayMs, lengthMs / 20);
}

const actions: Column<BudgetView> = ["Actions", (budget) => <Actions budget={budget} />];

function Actions({ budget }: { readonly budget: BudgetView }) {
  const isOperator = useRole() === "operator";
  if (!isOperator && budget.set_by === "operator") {
    return <span className="muted">an operator changes it</span>;
  }
  const what = `the budget of ${usdText(Number(budget.limit_usd))}`;
  return (
    <span className="row">
      <Ask text="Change..." label={`Change ${what}`} look="quiet">
        <ChangeBudget budget={budget} />
      </Ask>
      <Ask text="Delete..." label={`Delete ${what}`} look="quiet">
        <ChangeDialog
          title={`Delete ${what}`}
          submit="Delete budget"
          isDanger
          change="DELETE /budgets/{id}"
          body={undefined}
          parameters={{ id: budget.id }}
        >
          <p>
            Its calls are limited no more, and what was spent under it is forgotten. The usage
            stays. It cannot be restored.
          </p>
        </ChangeDialog>
      </Ask>
    </span>
  );
}
