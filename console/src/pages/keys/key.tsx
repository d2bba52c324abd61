import { useState } from "react";
import type { Applied, KeyView, SecretView } from "../../api/contract.ts";
import { useLive } from "../../api/live.ts";
import { useChange } from "../../api/use-change.ts";
import { useRead } from "../../api/use-read.ts";
import { Badge } from "../../parts/badge.tsx";
import { AppLink, Button, ButtonLink } from "../../parts/button.tsx";
import { Copy } from "../../parts/copy.tsx";
import { Ask } from "../../parts/dialog.tsx";
import { ErrorNote, Note } from "../../parts/error-note.tsx";
import { Count, exactText, LimitBar } from "../../parts/numbers.tsx";
import { Details } from "../../parts/details.tsx";
import { Facts } from "../../parts/facts.tsx";
import { Loaded, Page, type PageProps, Section } from "../../parts/page.tsx";
import { Receipt } from "../../parts/receipt.tsx";
import { type Column, Table } from "../../parts/table.tsx";
import { Time } from "../../parts/time.tsx";
import { useMayChange } from "../../shell/role.ts";
import { BudgetsOfKey } from "../budgets/budgets-of-key.tsx";
import { EndSecret } from "./end-secret.tsx";
import { KeySettings } from "./key-settings.tsx";
import { keyName, KeyStatusBadge, limitsSource, UseOfLimits } from "./key-words.tsx";
import { RevokeKey } from "./revoke-key.tsx";

/** How is this key doing, and is it safe to change? */
export function KeyPage({ id }: PageProps) {
  const key = useRead("/keys/{id}", { id });
  const [receipt, setReceipt] = useState<Applied>();
  return (
    <Page
      title={key.data === undefined ? "Key" : keyName(key.data)}
      question="How is this key doing, and is it safe to change?"
      actions={key.data && <Actions view={key.data} onRevoked={setReceipt} />}
    >
      <Loaded query={key}>
        {(view) => (
          <>
            {view.status === "revoked" && <Revoked view={view} />}
            {view.status === "revoked" && receipt !== undefined && (
              <RevokedReceipt view={view} applied={receipt} />
            )}
            {view.status === "disabled" && <Disabled view={view} />}
            <About view={view} />
            {view.status !== "revoked" && <Now view={view} />}
            <Secrets view={view} />
            <Details summary="Budgets that its calls are under">
              <BudgetsOfKey view={view} />
            </Details>
            <Settings view={view} />
          </>
        )}
      </Loaded>
    </Page>
  );
}

interface ViewProps {
  readonly view: KeyView;
}

function Actions({
  view,
  onRevoked,
}: ViewProps & { readonly onRevoked: (applied: Applied | undefined) => void }) {
  const mayChange = useMayChange();
  if (!mayChange || view.status === "revoked") return null;
  return (
    <>
      {view.status !== "expired" && (
        <ButtonLink to={`/keys/${view.id}/rotate`} look="primary">
          Rotate
        </ButtonLink>
      )}
      {view.disabled_at === null && <Switch view={view} text="Disable" />}
      <Ask text="Revoke...">
        <RevokeKey view={view} onRevoked={onRevoked} />
      </Ask>
    </>
  );
}

/** One press disables the key, another enables it. */
function Switch({ view, text }: ViewProps & { readonly text: string }) {
  const { run, isRunning, failure } = useChange("PATCH /keys/{id}");
  const { id, revision, disabled_at: since } = view;
  return (
    <>
      <Button
        isBusy={isRunning}
        onPress={() => run({ revision, disabled: since === null }, { id })}
      >
        {text}
      </Button>
      {failure !== undefined && <ErrorNote failure={failure} />}
    </>
  );
}

function Disabled({ view }: ViewProps) {
  const mayChange = useMayChange();
  return (
    <Note tone="warn" more={mayChange && <Switch view={view} text="Undo: enable it" />}>
      Its calls are refused since <Time at={view.disabled_at} />, when{" "}
      {view.disabled_by === "operator" ? "an operator" : "an account holder"} disabled it. Nothing
      else has changed.
    </Note>
  );
}

function Revoked({ view: { id, revoked_at: at } }: ViewProps) {
  return (
    <Note tone="warn">
      It was revoked <Time at={at} /> (
      <AppLink to="/audit" own={{ subject: id, action: "key.revoke" }}>
        by whom
      </AppLink>
      ), for good: every call with it is refused. Its{" "}
      <AppLink to="/usage" own={{ key: id }}>
        usage
      </AppLink>{" "}
      stays.
    </Note>
  );
}

function RevokedReceipt({ view, applied }: ViewProps & { readonly applied: Applied }) {
  const [newer, setNewer] = useState<Applied>();
  const { run, isRunning } = useChange("DELETE /keys/{id}");
  const askAgain = async (): Promise<void> => {
    const answer = await run(undefined, { id: view.id });
    if (answer.ok) setNewer(answer.value.applied);
  };
  return (
    <Receipt
      applied={newer ?? applied}
      done="refuse it"
      hints={view.secrets.map(({ hint }) => hint)}
      onAskAgain={askAgain}
      isAsking={isRunning}
    />
  );
}

function About({ view }: ViewProps) {
  const id = (
    <span className="row">
      <code>{view.id}</code>
      <Copy text={view.id} what="the key's id" />
    </span>
  );
  return (
    <Facts
      facts={[
        ["Status", <KeyStatusBadge key="status" status={view.status} />],
        ["Id", id],
        ["Application", `${view.application} of ${view.account}, in ${view.environment}`],
        ["Plan", view.plan],
        ["Created", <Time key="created" at={view.created_at} />],
        view.revoked_at === null
          ? ["Expires", <Time key="expires" at={view.expires_at} />]
          : ["Revoked", <Time key="revoked" at={view.revoked_at} />],
      ]}
    />
  );
}

/** What it uses of its limits at this moment. */
function Now({ view }: ViewProps) {
  const live = useLive("key", view.id)?.get(view.id);
  const use = live?.use ?? undefined;
  return (
    <Section
      title="In the last 60 seconds"
      label="Use of the limits"
      actions={(["usage", "calls"] as const).map((name) => (
        <ButtonLink key={name} look="quiet" to={`/${name}`} own={{ key: view.id }}>
          {name === "usage" ? "Usage" : "Calls"}
        </ButtonLink>
      ))}
    >
      {use === undefined ? (
        <p className="muted">
          {live === undefined
            ? "Waiting for the gateways..."
            : "No gateway accepts this key at the moment."}{" "}
          Its limits in any minute: {limitsText(view)}.
        </p>
      ) : (
        <div className="grid">
          <UseOfLimits use={use} />
          {use.guarantee !== null && (
            <LimitBar
              name={`Guaranteed tokens in ${use.guarantee.seconds} s`}
              used={use.guarantee.used}
              limit={use.guarantee.limit}
              setBy={`${view.provisioned_units} units of pool ${view.provisioned_pool ?? ""}`}
            />
          )}
          <p>
            <Count value={use.open_calls} /> open {use.open_calls === 1 ? "call" : "calls"}
            <br />
            <span className="muted small">on machine {live?.machine}</span>
          </p>
        </div>
      )}
    </Section>
  );
}

function Secrets({ view }: ViewProps) {
  const live = useLive("key", view.id)?.get(view.id);
  const mayChange = useMayChange();
  const mayEnd = mayChange && view.secrets.filter(({ status }) => status === "live").length > 1;
  const lastUse = (secret: SecretView): string | null =>
    live?.secrets.find((each) => each.public_id === secret.public_id)?.last_used_at ??
    secret.last_used_at;
  const columns: readonly Column<SecretView>[] = [
    ["Secret", ({ hint }) => <code>{hint}...</code>],
    ["Created", ({ created_at: at }) => <Time at={at} />, "wide"],
    ["Last used", (secret) => <Time at={lastUse(secret)} isRelative />],
    [
      "Ends",
      ({ expires_at: at, status }) => (
        <Time at={at ?? (status === "ended" ? view.revoked_at : null)} />
      ),
    ],
    [
      "Status",
      (secret) => (
        <span className="row">
          <Badge tone={secret.status === "live" ? "ok" : "plain"}>{secret.status}</Badge>
          {mayEnd && secret.status === "live" && (
            <Ask text="End..." look="quiet">
              <EndSecret view={view} secret={secret} lastUsedAt={lastUse(secret)} />
            </Ask>
          )}
        </span>
      ),
    ],
  ];
  return (
    <Section title="Secrets">
      <p className="muted">What applications send. Two are live during a rotation.</p>
      <Table
        caption="Secrets"
        columns={columns}
        rows={view.secrets}
        idOf={({ public_id: id }) => id}
      />
    </Section>
  );
}

function Settings({ view }: ViewProps) {
  const mayChange = useMayChange();
  return (
    <Section
      title="Settings"
      actions={
        <>
          <ButtonLink look="quiet" to="/audit" own={{ subject: view.id }}>
            Who changed it
          </ButtonLink>
          {mayChange && view.status !== "revoked" && (
            <Ask text="Change...">
              <KeySettings view={view} />
            </Ask>
          )}
        </>
      }
    >
      <Facts
        facts={[
          ["Limits in any minute", limitsText(view)],
          ["Provisioned units", unitsText(view)],
          ["Models", view.allowed_models?.join(", ") ?? "all of the environment"],
          ["Networks", view.allowed_networks?.join(", ") ?? "any address"],
          ["Note", view.note === "" ? "none" : view.note],
        ]}
      />
    </Section>
  );
}

function limitsText(view: KeyView): string {
  const limits = view.effective_limits;
  if (limits === null) return `Plan ${view.plan} is no longer configured.`;
  const { requests_per_minute: requests, tokens_per_minute: tokens } = limits;
  return `${exactText(requests)} requests, ${exactText(tokens)} tokens; set by ${limitsSource(view)}`;
}

function unitsText({ provisioned_units: units, provisioned_pool: pool }: KeyView): string {
  return units === 0 ? "none" : `${exactText(units)} of pool ${pool ?? ""}`;
}
