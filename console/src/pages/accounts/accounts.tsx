import { useLocation } from "wouter";
import type { AccountView, Choices } from "../../api/contract.ts";
import { useList } from "../../api/use-read.ts";
import { Badge } from "../../parts/badge.tsx";
import { Ask } from "../../parts/dialog.tsx";
import { Empty } from "../../parts/error-note.tsx";
import { ChangeDialog, Offered, useDraft } from "../../parts/form.tsx";
import { Listing } from "../../parts/listing.tsx";
import { Count } from "../../parts/numbers.tsx";
import { Page } from "../../parts/page.tsx";
import type { Column } from "../../parts/table.tsx";
import { Time } from "../../parts/time.tsx";
import { useRole } from "../../shell/role.ts";
import { useHref } from "../../url.ts";
import { AccountFields, emptyAccount, newAccountOf } from "./account-fields.tsx";
import { AppLink } from "../../parts/button.tsx";

/** Who are the customers? */
export function AccountsPage() {
  const accounts = useList("/accounts");
  const create = useRole() === "operator" && (
    <Ask text="Create account" look="primary">
      <Offered title={creation} of={["plans"]}>
        {({ plans }) => <CreateAccount plans={plans} />}
      </Offered>
    </Ask>
  );
  return (
    <Page title="Accounts" question="Who are the customers?" actions={create}>
      <Listing
        list={accounts}
        caption="Accounts"
        columns={columns}
        idOf={({ id }) => id}
        empty={
          <Empty
            sentence="There are no accounts yet. An account owns applications and their keys."
            action={create}
            command="sluice accounts create NAME --plans PLAN"
          />
        }
      />
    </Page>
  );
}

const creation = "Create an account";

const columns: readonly Column<AccountView>[] = [
  ["Account", ({ id, name }) => <AppLink to={`/accounts/${id}`}>{name}</AppLink>],
  ["Plans", ({ plans }) => plans.join(", ") || <span className="muted">none</span>],
  ["Maximum keys", ({ max_keys: most }) => <Count value={most} />, "wide number"],
  [
    "Tokens / min",
    ({ limits }) => <Count value={limits?.tokens_per_minute ?? null} />,
    "wide number",
  ],
  ["Created", ({ created_at: at }) => <Time at={at} />, "wide"],
  ["Status", (account) => <AccountStatus view={account} />],
];

export function AccountStatus({ view }: { readonly view: Pick<AccountView, "disabled_at"> }) {
  const isActive = view.disabled_at === null;
  return <Badge tone={isActive ? "ok" : "warn"}>{isActive ? "active" : "disabled"}</Badge>;
}

function CreateAccount({ plans }: Pick<Choices, "plans">) {
  const fields = useDraft(emptyAccount);
  const href = useHref();
  const [, navigate] = useLocation();
  return (
    <ChangeDialog
      title={creation}
      submit="Create account"
      change="POST /accounts"
      body={newAccountOf(fields.draft)}
      onDone={({ id }) => navigate(href(`/accounts/${id}`))}
    >
      <AccountFields plans={plans} {...fields} />
    </ChangeDialog>
  );
}
