import type { ReactNode } from "react";
import type { CallDetail, Explanation, RefusalView } from "../../api/contract.ts";
import { useRead } from "../../api/use-read.ts";
import { Badge } from "../../parts/badge.tsx";
import { AppLink, Button, ButtonLink } from "../../parts/button.tsx";
import { Copy } from "../../parts/copy.tsx";
import { Empty, Note } from "../../parts/error-note.tsx";
import { Details } from "../../parts/details.tsx";
import { type Fact, Facts } from "../../parts/facts.tsx";
import { Cost } from "../../parts/money.tsx";
import { exactText, LimitBar, Tokens } from "../../parts/numbers.tsx";
import { Loaded, Page, type PageProps, Section } from "../../parts/page.tsx";
import { durationText, Time } from "../../parts/time.tsx";
import { useSeesAll } from "../../shell/role.ts";
import { limitSource } from "../keys/key-words.tsx";
import { adviceFor } from "./advice.ts";
import { CostParts } from "./cost-parts.tsx";
import { isRefused, OutcomeBadge, sourceWords, statusText } from "./call-words.tsx";
import { Routing } from "./routing.tsx";

/** What happened to this call? */
export function CallPage({ id }: PageProps) {
  const explanation = useRead("/explain/{id}", { id });
  const isUnknown = explanation.error?.status === 404;
  return (
    <Page
      title={`Request ${id}`}
      question="What happened to it, and why?"
      actions={<ButtonLink to="/calls">All calls</ButtonLink>}
    >
      {isUnknown ? (
        <Empty
          sentence={explanation.error?.message ?? ""}
          action={<Button onPress={explanation.refetch}>Look again</Button>}
          command={`sluice explain ${id}`}
        />
      ) : (
        <Loaded query={explanation}>{(found) => <Explained explanation={found} />}</Loaded>
      )}
    </Page>
  );
}

function Explained({ explanation }: { readonly explanation: Explanation }) {
  const { call, refusal, is_ledger_read } = explanation;
  return (
    <>
      <Verdict call={call} refusal={refusal} />
      {!is_ledger_read && (
        <Note tone="warn">
          The ledger cannot be read now. If targets were tried, they are not shown.
        </Note>
      )}
      {refusal !== null && <Refused refusal={refusal} />}
      {call !== null && <Measures call={call} />}
      {call?.routing && <Routing routing={call.routing} />}
      <AllFacts {...explanation} />
    </>
  );
}

interface Parts {
  readonly call: CallDetail | null;
  readonly refusal: RefusalView | null;
}

/** How it ended, in a sentence, and what to do. */
function Verdict({ call, refusal }: Parts) {
  const advice = adviceFor({ call, refusal });
  return (
    <section className="card stack tight" aria-label="What happened">
      <div className="row">
        {call === null ? <Badge tone="bad">refused</Badge> : <OutcomeBadge call={call} />}
        <strong>{statusOf({ call, refusal })}</strong>
      </div>
      <p>{sentenceOf({ call, refusal })}</p>
      {advice !== undefined && (
        <p>
          <strong>What to do:</strong> {withCode(advice)}
        </p>
      )}
    </section>
  );
}

/** Parts between backquotes are code. */
function withCode(text: string): readonly ReactNode[] {
  return text.split("`").map((part, index) => {
    return index % 2 === 1 ? <code key={index}>{part}</code> : part;
  });
}

function statusOf({ call, refusal }: Parts): string {
  if (refusal === null) return call === null ? "" : statusText(call.status, call.code);
  const { status, code, caller_status: seen } = refusal;
  if (refusal.is_audited) return `${statusText(seen ?? 200, call?.code ?? null)} (${status})`;
  const text = statusText(status, code);
  return seen === null || seen === status ? text : `${text} (the caller saw ${seen})`;
}

function sentenceOf({ call, refusal }: Parts): string {
  if (refusal !== null) return refusal.summary;
  if (call === null) return "";
  if (isRefused(call)) {
    return "The gateway refused it. The reason is no longer kept: only the last 20 of each key are, of frequent ones fewer.";
  }
  switch (call.outcome) {
    case "completed":
      return `${call.target ?? "A target"} answered it${call.attempts > 1 ? ` at attempt ${call.attempts}` : ""}.`;
    case "failed":
      return call.first_event_ms !== null
        ? "The answer began, and then broke off. The caller got an error in the stream."
        : "No target gave an answer. The attempts say what failed.";
    case "abandoned":
      return "Its caller left before the end.";
    case "interrupted":
      return "The gateway's process ended during the call.";
  }
}

function Refused({ refusal }: { readonly refusal: RefusalView }) {
  const { rule, param, plan, window, at, account_id: account, is_audited } = refusal;
  const budgets = (
    <AppLink to="/budgets" own={{ account: account ?? "" }}>
      what is left, and who can raise it
    </AppLink>
  );
  return (
    <Section title={is_audited ? "What enforcing would refuse" : "Refusal"}>
      <Facts
        facts={[
          ["Rule", <code>{rule}</code>],
          ["Budgets", rule === "budget_exceeded" && budgets],
          ["Field", param && <code>{param}</code>],
        ]}
      />
      {window !== null && (
        <div className="card stack tight">
          <LimitBar
            name="In the 60 seconds before"
            used={window.used}
            limit={window.limit}
            setBy={scopeText(window.scope_id, plan)}
          />
          <p className="small">
            The request needed {exactText(window.requested)}.{" "}
            {window.free_at === null
              ? "It is larger than the limit itself, so it never fits."
              : `Without other requests it would have fitted ${durationText(
                  Date.parse(window.free_at) - Date.parse(at),
                )} later.`}
          </p>
        </div>
      )}
    </Section>
  );
}

function scopeText(id: string, plan: string | null): string {
  const [sort] = id.replace(/^audit:/, "").split(":");
  if (sort === "account") return limitSource("account", plan);
  if (sort === "guarantee") return "the provisioned units of the key";
  const source = limitSource(plan === null ? "key" : "plan", plan);
  return sort === "end-user" ? `${source}, for each end user` : source;
}

/** Tokens and times. */
function Measures({ call }: { readonly call: CallDetail }) {
  const { first_event_ms: first, duration_ms: duration, output_tokens: output } = call;
  const streamMs = first === null ? 0 : duration - first;
  const seesAll = useSeesAll();
  return (
    <div className="grid">
      <section className="card stack tight" aria-label="Tokens">
        <h2>{exactText(call.input_tokens + output)} tokens</h2>
        <Tokens counts={call} />
        {!isRefused(call) && <p className="muted small">{sourceWords[call.usage_source]}</p>}
        {call.may_be_billed_twice && (
          <p className="small">
            The provider may also bill an attempt that did not answer: it may have completed it.
          </p>
        )}
      </section>
      <section className="card stack tight" aria-label="Cost">
        <h2>
          <Cost usd={call.cost_usd} />
        </h2>
        <p className="small">{priceText(call)}</p>
        {seesAll && call.price_version !== null && (
          <Details summary="Its parts">
            <CostParts call={call} />
          </Details>
        )}
      </section>
      <section className="card stack tight" aria-label="Times">
        <h2>{durationText(duration)}</h2>
        <p className="small">
          {first === null
            ? "No event of an answer came."
            : `${durationText(first)} until the first event, ${durationText(streamMs)} after it`}
        </p>
        {call.is_streamed && streamMs > 0 && output > 0 && (
          <p className="muted small">
            {exactText(Math.round(output / (streamMs / 1_000)))} tokens a second
          </p>
        )}
      </section>
    </div>
  );
}

function priceText({ cost_usd: usd, price_version: version, service_tier: tier }: CallDetail) {
  if (usd === null) return "Its target, its tier or a kind of its tokens has no price.";
  if (version === null) return "It used nothing that is paid for.";
  const ofTier = tier === null ? "" : `, tier ${tier}`;
  return `By price table ${version}${ofTier}, as it was when the call arrived.`;
}

function AllFacts({ id, call, refusal, names }: Explanation) {
  const seesAll = useSeesAll();
  const link = (path: string, text: string, own = {}) => (
    <AppLink to={path} own={own}>
      {text}
    </AppLink>
  );
  const key = call?.key_id ?? refusal?.key_id;
  const account = call?.account_id ?? refusal?.account_id;
  const at = call?.started_at ?? refusal?.at ?? null;
  const name = call?.application ?? refusal?.application;
  const application = name && `${name} in ${call?.environment ?? refusal?.environment ?? ""}`;
  const rows: readonly Fact[] = [
    [
      "Request",
      <span className="row">
        <code>{id}</code>
        <Copy text={id} what="the request's id" />
      </span>,
    ],
    ["Began", <Time at={at} isExact />],
    ["Key", key && link(`/keys/${key}`, names.key ?? key)],
    ["Secret", refusal?.public_id && <code>{`sk-slc_${refusal.public_id}...`}</code>],
    [
      "Application",
      call === null || !application
        ? application
        : link("/keys", application, { application: call.application_id }),
    ],
    ["Made in", call?.via && "the playground"],
    ["End user", call?.end_user && link("/calls", call.end_user, { end_user: call.end_user })],
    ...Object.entries(call?.tags ?? {}).map(([tag, value]): Fact => [
      `Tag ${tag}`,
      link("/calls", value, { tag: `${tag}=${value}` }),
    ]),
    ["Account", account && link(`/accounts/${account}`, names.account ?? account)],
    ["Model", call?.model ?? refusal?.model],
    ["API", call?.dialect ?? refusal?.dialect],
    ["Streamed", call && (call.is_streamed ? "yes" : "no")],
    ["Target", call?.target && (seesAll ? link("/targets", call.target) : call.target)],
    ["Attempts", call && exactText(call.attempts)],
    ["Capacity", call?.class],
  ];
  return (
    <Section title="Facts">
      <Facts facts={rows} />
    </Section>
  );
}
