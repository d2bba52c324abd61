import { useState } from "react";
import { Link } from "wouter";
import type { Applied, KeyView, SecretView } from "../../api/contract.ts";
import { useLive } from "../../api/live.ts";
import { useChange } from "../../api/use-change.ts";
import { useCache, useList, useRead } from "../../api/use-read.ts";
import { Badge } from "../../parts/badge.tsx";
import { Button, ButtonLink } from "../../parts/button.tsx";
import { Copy } from "../../parts/copy.tsx";
import { ErrorNote, Note } from "../../parts/error-note.tsx";
import { Count, exactText, LimitBar } from "../../parts/numbers.tsx";
import { Facts } from "../../parts/facts.tsx";
import { Loaded, Page, type PageProps } from "../../parts/page.tsx";
import { Receipt } from "../../parts/receipt.tsx";
import { type Column, Table } from "../../parts/table.tsx";
import { Time } from "../../parts/time.tsx";
import { actorName, useMayChange } from "../../shell/role.ts";
import { useHref } from "../../url.ts";
import { EndSecret } from "./end-secret.tsx";
import { KeySettings } from "./key-settings.tsx";
import { keyName, KeyStatusBadge, limitsSource, UseOfLimits } from "./key-words.tsx";
import { RevokeKey } from "./revoke-key.tsx";

/** How is this key doing, and is it safe to change? */
export function KeyPage({ id }: PageProps) {
  const key = useRead("/keys/{id}", { id });
  const [asking, setAsking] = useState<"revoke" | "settings">();
  const [receipt, setReceipt] = useState<Applied>();
  const close = (): void => setAsking(undefined);
  return (
    <Page
      title={key.data === undefined ? "Key" : keyName(key.data)}
      question="How is this key doing, and is it safe to change?"
      actions={key.data && <Actions view={key.data} onRevoke={() => setAsking("revoke")} />}
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
            <Settings view={view} onChange={() => setAsking("settings")} />
            {asking === "settings" && <KeySettings view={view} onClose={close} />}
            {asking === "revoke" && (
              <RevokeKey
                view={view}
                onClose={close}
                onRevoked={(applied) => {
                  setReceipt(applied);
                  close();
                }}
              />
            )}
          </>
        )}
      </Loaded>
    </Page>
  );
}

interface ViewProps {
  readonly view: KeyView;
}

function Actions({ view, onRevoke }: ViewProps & { readonly onRevoke: () => void }) {
  const href = useHref();
  const mayChange = useMayChange();
  const cache = useCache();
  const { run, isRunning, failure } = useChange("PATCH /keys/{id}");
  if (!mayChange || view.status === "revoked") return null;
  const disable = async (): Promise<void> => {
    const answer = await run({ revision: view.revision, disabled: true }, { id: view.id });
    if (answer.ok) cache.writeKey(answer.value);
  };
  return (
    <>
      {view.status !== "expired" && (
        <ButtonLink href={href(`/keys/${view.id}/rotate`)} look="primary">
          Rotate
        </ButtonLink>
      )}
      {view.disabled_at === null && (
        <Button isBusy={isRunning} onPress={disable}>
          Disable
        </Button>
      )}
      <Button onPress={onRevoke}>Revoke...</Button>
      {failure !== undefined && <ErrorNote failure={failure} />}
    </>
  );
}

function Disabled({ view }: ViewProps) {
  const cache = useCache();
  const mayChange = useMayChange();
  const { run, isRunning, failure } = useChange("PATCH /keys/{id}");
  const enable = async (): Promise<void> => {
    const answer = await run({ revision: view.revision, disabled: false }, { id: view.id });
    if (answer.ok) cache.writeKey(answer.value);
  };
  return (
    <Note tone="warn">
      <p>
        Its calls are refused since <Time at={view.disabled_at} />, when{" "}
        {view.disabled_by === "operator" ? "an operator" : "an account holder"} disabled it. Nothing
        else has changed.
      </p>
      {mayChange && (
        <div>
          <Button isBusy={isRunning} onPress={enable}>
            Undo: enable it
          </Button>
        </div>
      )}
      {failure !== undefined && <ErrorNote failure={failure} />}
    </Note>
  );
}

function Revoked({ view: { id, revoked_at: at } }: ViewProps) {
  const entries = useList("/audit", { subject_id: id, action: "key.revoke", limit: 1 });
  const revocation = entries.query.data?.[0];
  const href = useHref();
  return (
    <Note tone="warn">
      <p>
        It was revoked <Time at={at} />
        {revocation !== undefined && ` by ${actorName(revocation.actor)}`}, for good: every call
        with it is refused. Its <Link href={href("/usage", { key: id })}>usage</Link> stays.
      </p>
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
  const href = useHref();
  return (
    <section className="stack tight" aria-label="Use of the limits">
      <div className="row spread">
        <h2>In the last 60 seconds</h2>
        <span className="row">
          <ButtonLink look="quiet" href={href("/usage", { key: view.id })}>
            Usage
          </ButtonLink>
          <ButtonLink look="quiet" href={href("/calls", { key: view.id })}>
            Calls
          </ButtonLink>
        </span>
      </div>
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
    </section>
  );
}

function Secrets({ view }: ViewProps) {
  const live = useLive("key", view.id)?.get(view.id);
  const mayChange = useMayChange();
  const [ending, setEnding] = useState<SecretView>();
  const count = view.secrets.filter(({ status }) => status === "live").length;
  const lastUse = (secret: SecretView): string | null =>
    live?.secrets.find((each) => each.public_id === secret.public_id)?.last_used_at ??
    secret.last_used_at;
  const columns: readonly Column<SecretView>[] = [
    { title: "Secret", cell: ({ hint }) => <code>{hint}...</code> },
    { title: "Created", cell: ({ created_at: at }) => <Time at={at} />, isWideOnly: true },
    { title: "Last used", cell: (secret) => <Time at={lastUse(secret)} isRelative /> },
    {
      title: "Ends",
      cell: ({ expires_at: at, status }) => (
        <Time at={at ?? (status === "ended" ? view.revoked_at : null)} />
      ),
    },
    {
      title: "Status",
      cell: ({ status }) => <Badge tone={status === "live" ? "ok" : "plain"}>{status}</Badge>,
    },
    ...(mayChange && count > 1
      ? [
          {
            title: "",
            cell: (secret: SecretView) =>
              secret.status === "live" && (
                <Button look="quiet" onPress={() => setEnding(secret)}>
                  End...
                </Button>
              ),
          },
        ]
      : []),
  ];
  return (
    <section className="stack tight" aria-label="Secrets">
      <h2>Secrets</h2>
      <p className="muted">What applications send. Two are live during a rotation.</p>
      <Table
        caption="Secrets"
        columns={columns}
        rows={view.secrets}
        idOf={({ public_id: id }) => id}
      />
      {ending !== undefined && (
        <EndSecret
          view={view}
          secret={ending}
          lastUsedAt={lastUse(ending)}
          onClose={() => setEnding(undefined)}
        />
      )}
    </section>
  );
}

function Settings({ view, onChange }: ViewProps & { readonly onChange: () => void }) {
  const href = useHref();
  const mayChange = useMayChange();
  return (
    <section className="stack tight" aria-label="Settings">
      <div className="row spread">
        <h2>Settings</h2>
        <span className="row">
          <ButtonLink look="quiet" href={href("/audit", { subject: view.id })}>
            Who changed it
          </ButtonLink>
          {mayChange && view.status !== "revoked" && <Button onPress={onChange}>Change...</Button>}
        </span>
      </div>
      <Facts
        facts={[
          ["Limits in any minute", limitsText(view)],
          ["Provisioned units", unitsText(view)],
          ["Models", view.allowed_models?.join(", ") ?? "all of the environment"],
          ["Networks", view.allowed_networks?.join(", ") ?? "any address"],
          ["Note", view.note === "" ? "none" : view.note],
        ]}
      />
    </section>
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
