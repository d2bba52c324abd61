import { useState } from "react";
import type { AccountView, Applied, Erased } from "../../api/contract.ts";
import { useChange } from "../../api/use-change.ts";
import { useCache, useRead } from "../../api/use-read.ts";
import { Button, ButtonLink } from "../../parts/button.tsx";
import { Copy } from "../../parts/copy.tsx";
import { ErrorNote, Note } from "../../parts/error-note.tsx";
import { Count, exactText } from "../../parts/numbers.tsx";
import { Loaded, Page, type PageProps } from "../../parts/page.tsx";
import { Receipt } from "../../parts/receipt.tsx";
import { Time } from "../../parts/time.tsx";
import { useRole } from "../../shell/role.ts";
import { useHref } from "../../url.ts";
import { AccountSettings } from "./account-settings.tsx";
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
            <Facts view={view} />
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
    cache.write("/accounts/{id}", { id }, answer.value);
    cache.refresh("/accounts");
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

function Facts({ view }: ViewProps) {
  return (
    <dl className="facts card">
      <dt>Status</dt>
      <dd>
        <AccountStatus view={view} />
      </dd>
      <dt>Id</dt>
      <dd className="row">
        <code>{view.id}</code>
        <Copy text={view.id} what="the account's id" />
      </dd>
      <dt>Plans of its keys</dt>
      <dd>
        {view.plans.join(", ") || <span className="muted">none: only operators issue keys</span>}
      </dd>
      <dt>Most keys</dt>
      <dd>
        <Count value={view.max_keys} />
      </dd>
      <dt>Limits of all its keys</dt>
      <dd>
        {view.limits === null ? (
          <span className="muted">none beside those of each key</span>
        ) : (
          <>
            <Count value={view.limits.requests_per_minute} unit="requests" /> and{" "}
            <Count value={view.limits.tokens_per_minute} unit="tokens" /> in any minute
          </>
        )}
      </dd>
      <dt>Created</dt>
      <dd>
        <Time at={view.created_at} />
      </dd>
      <dt>Note</dt>
      <dd>{view.note === "" ? <span className="muted">none</span> : view.note}</dd>
    </dl>
  );
}

/** To the pages about what it has; all take the account from the address. */
function Leads({ id: account }: { readonly id: string }) {
  const href = useHref();
  const overseesUsers = useRole() !== "account_holder";
  return (
    <section className="stack tight" aria-label="Of this account">
      <h2>Of this account</h2>
      <div className="row">
        <ButtonLink href={href("/keys", { account })}>Keys</ButtonLink>
        <ButtonLink href={href("/keys", { account, view: "applications" })}>
          Applications
        </ButtonLink>
        <ButtonLink href={href("/usage", { account })}>Usage</ButtonLink>
        <ButtonLink href={href("/calls", { account })}>Calls</ButtonLink>
        {overseesUsers && <ButtonLink href={href("/users", { account })}>Users</ButtonLink>}
        <ButtonLink href={href("/audit", { account })}>Who changed it</ButtonLink>
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
