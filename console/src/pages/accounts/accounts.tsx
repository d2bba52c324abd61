import { useState } from "react";
import { Link, useLocation } from "wouter";
import type { AccountView } from "../../api/contract.ts";
import { useChange } from "../../api/use-change.ts";
import { useCache, useList } from "../../api/use-read.ts";
import { Badge } from "../../parts/badge.tsx";
import { Button } from "../../parts/button.tsx";
import { Empty } from "../../parts/error-note.tsx";
import { FormDialog } from "../../parts/form.tsx";
import { Listing } from "../../parts/listing.tsx";
import { Count } from "../../parts/numbers.tsx";
import { Page } from "../../parts/page.tsx";
import type { Column } from "../../parts/table.tsx";
import { Time } from "../../parts/time.tsx";
import { useRole } from "../../shell/role.ts";
import { useHref } from "../../url.ts";
import { AccountFields, emptyAccount, newAccountOf } from "./account-fields.tsx";

/** Who are the customers? */
export function AccountsPage() {
  const mayChange = useRole() === "operator";
  const [isCreating, setCreating] = useState(false);
  const accounts = useList("/accounts");
  const create = mayChange && (
    <Button look="primary" onPress={() => setCreating(true)}>
      Create account
    </Button>
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
      {isCreating && <CreateAccount onClose={() => setCreating(false)} />}
    </Page>
  );
}

const columns: readonly Column<AccountView>[] = [
  { title: "Account", cell: (account) => <AccountLink view={account} /> },
  { title: "Plans", cell: ({ plans }) => plans.join(", ") || <span className="muted">none</span> },
  {
    title: "Maximum keys",
    cell: ({ max_keys: most }) => <Count value={most} />,
    isNumber: true,
    isWideOnly: true,
  },
  {
    title: "Tokens / min",
    cell: ({ limits }) => <Count value={limits?.tokens_per_minute ?? null} />,
    isNumber: true,
    isWideOnly: true,
  },
  { title: "Created", cell: ({ created_at: at }) => <Time at={at} />, isWideOnly: true },
  { title: "Status", cell: (account) => <AccountStatus view={account} /> },
];

function AccountLink({ view: { id, name } }: { readonly view: AccountView }) {
  const href = useHref();
  return <Link href={href(`/accounts/${id}`)}>{name}</Link>;
}

export function AccountStatus({ view }: { readonly view: Pick<AccountView, "disabled_at"> }) {
  const isActive = view.disabled_at === null;
  return <Badge tone={isActive ? "ok" : "warn"}>{isActive ? "active" : "disabled"}</Badge>;
}

function CreateAccount({ onClose }: { readonly onClose: () => void }) {
  const [draft, setDraft] = useState(emptyAccount);
  const change = useChange("POST /accounts");
  const cache = useCache();
  const href = useHref();
  const [, navigate] = useLocation();
  const create = async (): Promise<void> => {
    const answer = await change.run(newAccountOf(draft));
    if (!answer.ok) return;
    cache.writeAccount(answer.value);
    navigate(href(`/accounts/${answer.value.id}`));
  };
  return (
    <FormDialog
      title="Create an account"
      submit="Create account"
      {...change}
      onSubmit={create}
      onClose={onClose}
    >
      <AccountFields draft={draft} onChange={(changed) => setDraft({ ...draft, ...changed })} />
    </FormDialog>
  );
}
