import { useState } from "react";
import { read } from "../../api/client.ts";
import type { AccountView, Applied, Erased } from "../../api/contract.ts";
import { useChange } from "../../api/use-change.ts";
import { useCache, useRead } from "../../api/use-read.ts";
import { Button, ButtonLink } from "../../parts/button.tsx";
import { Copy } from "../../parts/copy.tsx";
import { EditDialog } from "../../parts/edit-dialog.tsx";
import { ErrorNote, Note } from "../../parts/error-note.tsx";
import { type Fact, Facts } from "../../parts/facts.tsx";
import { Count, exactText } from "../../parts/numbers.tsx";
import { Loaded, Page, type PageProps } from "../../parts/page.tsx";
import { Receipt } from "../../parts/receipt.tsx";
import { Time } from "../../parts/time.tsx";
import { useRole } from "../../shell/role.ts";
import { useHref } from "../../url.ts";
import { accountDraft, AccountFields, accountLabels, newAccountOf } from "./account-fields.tsx";
import { AccountStatus } from "./accounts.tsx";
import { EraseAccount } from "./erase-account.tsx";

/** What does this customer have, and what may it use? */
export function AccountPage({ id }: PageProps) {
  const account = useRead("/accounts/{id}", { id });
  const mayChange = useRole() === "operator";
  const [asking, setAsking] = useState<"settings" | "erase">();
  const [erased, setErased] = useState<Erased>();
  const [receipt, setReceipt] = useState<Applied>();
  const close = (): void => setAsking(undefined);
  if (erased !== undefined) return <ErasedPage erased={erased} />;
  return (
    <Page
      title={account.data?.name ?? "Account"}
      question="What does this customer have, and what may it use?"
      actions={
        mayChange &&
        account.data !== undefined && (
          <>
            <Button look="primary" onPress={() => setAsking("settings")}>
              Change...
            </Button>
            <Disable view={account.data} onDone={setReceipt} />
            <Button onPress={() => setAsking("erase")}>Erase...</Button>
          </>
        )
      }
    >
      <Loaded query={account}>
        {(view) => (
          <>
            {view.disabled_at !== null && (
              <Note tone="warn">
                <p>
                  Calls of all its keys are refused since <Time at={view.disabled_at} />. Nothing
                  else has changed.
                </p>
              </Note>
            )}
            {receipt !== undefined && <Receipt applied={receipt} done="have the change" />}
            <Facts facts={factsOf(view)} />
            <Leads id={view.id} />
            {asking === "settings" && <AccountSettings view={view} onClose={close} />}
            {asking === "erase" && (
              <EraseAccount view={view} onClose={close} onErased={setErased} />
            )}
          </>
        )}
      </Loaded>
    </Page>
  );
}

interface ViewProps {
  readonly view: AccountView;
}

/** One press each way: it can be undone. */
function Disable({
  view,
  onDone,
}: ViewProps & { readonly onDone: (applied: Applied | undefined) => void }) {
  const { run, isRunning, failure } = useChange("PATCH /accounts/{id}");
  const cache = useCache();
  const isDisabled = view.disabled_at !== null;
  const toggle = async (): Promise<void> => {
    const { id, revision } = view;
    const answer = await run({ revision, disabled: !isDisabled }, { id });
    if (!answer.ok) return;
    cache.writeAccount(answer.value);
    onDone(answer.value.applied);
  };
  return (
    <>
      <Button isBusy={isRunning} onPress={toggle}>
        {isDisabled ? "Enable" : "Disable"}
      </Button>
      {failure !== undefined && <ErrorNote failure={failure} />}
    </>
  );
}

function AccountSettings({ view, onClose }: ViewProps & { readonly onClose: () => void }) {
  const { id } = view;
  const cache = useCache();
  return (
    <EditDialog
      title="Change the account"
      labels={accountLabels}
      view={view}
      draftOf={accountDraft}
      bodyOf={newAccountOf}
      change={useChange("PATCH /accounts/{id}")}
      id={id}
      read={() => read("/accounts/{id}", { id })}
      onRead={(newer) => cache.writeAccount(newer)}
      onClose={onClose}
    >
      {(draft, set) => <AccountFields draft={draft} onChange={set} />}
    </EditDialog>
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
  const href = useHref();
  const leads = [
    ["Keys", "/keys"],
    ["Applications", "/keys", "applications"],
    ["Usage", "/usage"],
    ["Calls", "/calls"],
    ...(useRole() === "account_holder" ? [] : [["Users", "/users"] as const]),
    ["Who changed it", "/audit"],
  ] as const;
  return (
    <section className="stack tight" aria-label="Of this account">
      <h2>Of this account</h2>
      <div className="row">
        {leads.map(([name, path, view = ""]) => (
          <ButtonLink key={name} href={href(path, { account, ...(view !== "" && { view }) })}>
            {name}
          </ButtonLink>
        ))}
      </div>
    </section>
  );
}

function ErasedPage({ erased: { removed } }: { readonly erased: Erased }) {
  return (
    <Page title="The account is erased">
      <Note tone="ok">
        <p>
          Keys: {exactText(removed.keys)}; applications: {exactText(removed.applications)}; users:{" "}
          {exactText(removed.users)}; calls: {exactText(removed.usage_rows)}. The audit keeps a
          record of it.
        </p>
      </Note>
      <div>
        <ButtonLink href="/accounts">Show the other accounts</ButtonLink>
      </div>
    </Page>
  );
}
