import { useState } from "react";
import type { AccountView, Applied, Erased } from "../../api/contract.ts";
import { useChange } from "../../api/use-change.ts";
import { useRead } from "../../api/use-read.ts";
import { Button, ButtonLink } from "../../parts/button.tsx";
import { Copy } from "../../parts/copy.tsx";
import { Ask } from "../../parts/dialog.tsx";
import { EditDialog } from "../../parts/edit-dialog.tsx";
import { ErrorNote, Note } from "../../parts/error-note.tsx";
import { type Fact, Facts } from "../../parts/facts.tsx";
import { Offered } from "../../parts/form.tsx";
import { Count, exactText } from "../../parts/numbers.tsx";
import { Loaded, Page, type PageProps, Section } from "../../parts/page.tsx";
import { Receipt } from "../../parts/receipt.tsx";
import { Time } from "../../parts/time.tsx";
import { useRole } from "../../shell/role.ts";
import { accountDraft, AccountFields, accountLabels, newAccountOf } from "./account-fields.tsx";
import { AccountStatus } from "./accounts.tsx";
import { EraseAccount } from "./erase-account.tsx";

/** What does this customer have, and what may it use? */
export function AccountPage({ id }: PageProps) {
  const account = useRead("/accounts/{id}", { id });
  const mayChange = useRole() === "operator";
  const [erased, setErased] = useState<Erased>();
  const [receipt, setReceipt] = useState<Applied>();
  if (erased !== undefined) return <ErasedPage erased={erased} />;
  const actions = mayChange && account.data !== undefined && (
    <Actions view={account.data} onDisabled={setReceipt} onErased={setErased} />
  );
  return (
    <Page
      title={account.data?.name ?? "Account"}
      question="What does this customer have, and what may it use?"
      actions={actions}
    >
      <Loaded query={account}>
        {(view) => (
          <>
            {view.disabled_at !== null && (
              <Note tone="warn">
                Calls of all its keys are refused since <Time at={view.disabled_at} />. Nothing else
                has changed.
              </Note>
            )}
            {receipt !== undefined && <Receipt applied={receipt} done="have the change" />}
            <Facts facts={factsOf(view)} />
            <Leads id={view.id} />
          </>
        )}
      </Loaded>
    </Page>
  );
}

interface ViewProps {
  readonly view: AccountView;
}

interface ActionsProps extends ViewProps {
  readonly onDisabled: (applied: Applied | undefined) => void;
  readonly onErased: (erased: Erased) => void;
}

function Actions({ view, onDisabled, onErased }: ActionsProps) {
  const { run, isRunning, failure } = useChange("PATCH /accounts/{id}");
  const { id, revision } = view;
  const isDisabled = view.disabled_at !== null;
  /** One press each way: it can be undone. */
  const toggle = async (): Promise<void> => {
    const answer = await run({ revision, disabled: !isDisabled }, { id });
    if (answer.ok) onDisabled(answer.value.applied);
  };
  return (
    <>
      <Ask text="Change..." look="primary">
        <AccountSettings view={view} />
      </Ask>
      <Button isBusy={isRunning} onPress={toggle}>
        {isDisabled ? "Enable" : "Disable"}
      </Button>
      {failure !== undefined && <ErrorNote failure={failure} />}
      <Ask text="Erase...">
        <EraseAccount view={view} onErased={onErased} />
      </Ask>
    </>
  );
}

function AccountSettings({ view }: ViewProps) {
  const title = "Change the account";
  return (
    <Offered title={title} of={["plans"]}>
      {({ plans }) => (
        <EditDialog
          title={title}
          labels={accountLabels}
          view={view}
          draftOf={accountDraft}
          bodyOf={newAccountOf}
          path="/accounts/{id}"
        >
          {(draft, set, bind) => (
            <AccountFields plans={plans} draft={draft} set={set} bind={bind} />
          )}
        </EditDialog>
      )}
    </Offered>
  );
}

function factsOf({
  id,
  plans,
  max_keys: most,
  limits,
  created_at: at,
  note,
  ...view
}: AccountView): Fact[] {
  const none = (text: string) => <span className="muted">{text}</span>;
  return [
    ["Status", <AccountStatus view={view} />],
    [
      "Id",
      <span className="row">
        <code>{id}</code>
        <Copy text={id} what="the account's id" />
      </span>,
    ],
    ["Plans of its keys", plans.join(", ") || none("none: only operators issue keys")],
    ["Maximum keys", <Count value={most} />],
    [
      "Limits of all its keys",
      limits === null
        ? none("none beside those of each key")
        : `${exactText(limits.requests_per_minute)} requests and ${exactText(limits.tokens_per_minute)} tokens in any minute`,
    ],
    ["Created", <Time at={at} />],
    ["Note", note || none("none")],
  ];
}

/** To the pages about what it has; all take the account from the address. */
function Leads({ id: account }: { readonly id: string }) {
  const leads = [
    ["Keys", "/keys"],
    ["Applications", "/keys", "applications"],
    ["Budgets", "/budgets"],
    ["Usage", "/usage"],
    ["Calls", "/calls"],
    ...(useRole() === "account_holder" ? [] : [["Users", "/users"] as const]),
    ["Who changed it", "/audit"],
  ] as const;
  return (
    <Section title="Of this account">
      <div className="row">
        {leads.map(([name, path, view = ""]) => (
          <ButtonLink key={name} to={path} own={{ account, ...(view !== "" && { view }) }}>
            {name}
          </ButtonLink>
        ))}
      </div>
    </Section>
  );
}

function ErasedPage({ erased: { removed } }: { readonly erased: Erased }) {
  return (
    <Page title="The account is erased">
      <Note tone="ok">
        Keys: {exactText(removed.keys)}; applications: {exactText(removed.applications)}; users:{" "}
        {exactText(removed.users)}; calls: {exactText(removed.usage_rows)}. The audit keeps a record
        of it.
      </Note>
      <ButtonLink to="/accounts">Show the other accounts</ButtonLink>
    </Page>
  );
}
