import type { LiveItems, LiveTargetView, Targets } from "../../api/contract.ts";
import { useLive } from "../../api/live.ts";
import { useRead } from "../../api/use-read.ts";
import { Badge } from "../../parts/badge.tsx";
import { Empty } from "../../parts/error-note.tsx";
import { Countdown, LiveMark } from "../../parts/live.tsx";
import { Count, percentText } from "../../parts/numbers.tsx";
import { Loaded, Page, Section } from "../../parts/page.tsx";
import { type Column, Table } from "../../parts/table.tsx";
import { durationText, Time } from "../../parts/time.tsx";

type Target = Targets["data"][number];
type Gate = LiveItems["gates"];

/** Which upstream is ill, and what is Sluice doing about it? */
export function TargetsPage() {
  const targets = useRead("/targets");
  const readAt = new Date(targets.dataUpdatedAt).toISOString();
  const live = useLive("targets");
  const gates = useLive("gates");
  return (
    <Page
      title="Targets"
      question="Which upstream is ill, and what does Sluice do about it?"
      actions={<LiveMark isKnown={live !== undefined} />}
    >
      <Loaded query={targets}>
        {(view) => {
          const rows = view.data.map((target) => ({ ...target, ...live?.get(target.id) }));
          return (
            <>
              <Summary rows={rows} />
              {rows.length === 0 ? (
                <Empty sentence="No model has a target." command="sluice check" />
              ) : (
                <Table
                  caption="Targets"
                  columns={targetColumns}
                  rows={rows}
                  idOf={({ id }) => id}
                />
              )}
              <p className="muted small">
                Share, failed calls and times to the first event are of all machines, from{" "}
                <Time at={view.since} isExact /> to <Time at={readAt} isExact />. States, attempts
                and calls in flight are live, of machine {view.machine}
                {view.other_machines.length > 0 &&
                  `; the consoles of ${view.other_machines.join(", ")} show theirs`}
                .
              </p>
              <Gates gates={gates === undefined ? view.gates : [...gates.values()]} />
            </>
          );
        }}
      </Loaded>
    </Page>
  );
}

/** In one sentence, whether anything is ill. */
function Summary({ rows }: { readonly rows: readonly LiveTargetView[] }) {
  const ill = rows.filter(({ state }) => state !== "in_service");
  const text =
    ill.length === 0
      ? `All ${rows.length} targets are in service.`
      : `${ill.length} of ${rows.length} targets ${ill.length === 1 ? "is" : "are"} ill: ` +
        `${ill.map(({ id }) => id).join(", ")}.`;
  return <p role="status">{text}</p>;
}

const targetColumns: readonly Column<Target>[] = [
  ["Target", (target) => <Name target={target} />],
  ["State", (target) => <State target={target} />],
  [
    "In flight",
    ({ in_flight: count, in_flight_limit: limit }) => (
      <>
        <Count value={count} />
        {limit !== null && <span title="Its limit while it is overloaded"> of {limit}</span>}
      </>
    ),
    "number",
  ],
  ["Share", ({ share, calls }) => (calls === 0 ? <None /> : percentText(share)), "number"],
  [
    "Failed",
    ({ failed_calls: failed, calls }) =>
      calls === 0 ? (
        <None />
      ) : (
        <>
          <Count value={failed} /> of <Count value={calls} />
        </>
      ),
    "number",
  ],
  ["Failed attempts", (target) => <FailedAttempts target={target} />, "number"],
  [
    "First event p50, p95",
    ({ first_event_ms: first }) =>
      first === null ? <None /> : `${durationText(first.p50)}, ${durationText(first.p95)}`,
    "number",
  ],
];

/** Other targets may have served their calls. */
function FailedAttempts({ target }: { readonly target: LiveTargetView }) {
  const { attempts, failures, last_failure: last } = target;
  const kinds = Object.entries(failures);
  if (attempts === 0 && last === null) return <None />;
  return (
    <>
      <Count value={kinds.reduce((sum, [, count]) => sum + count, 0)} /> of{" "}
      <Count value={attempts} />
      {last !== null && (
        <p className="small muted">
          {kinds.map(([kind, count]) => `${count} ${kind}, `)}
          last {last.kind} at <Time at={last.at} isExact />
        </p>
      )}
    </>
  );
}

function None() {
  return <span className="muted">none</span>;
}

function Name({ target: { id, models, pool } }: { readonly target: Target }) {
  const served = [...new Set(models.map(({ alias }) => alias))];
  return (
    <>
      <strong>{id}</strong>
      <br />
      <span className="muted small">
        {served.slice(0, 3).join(", ")}
        {served.length > 3 && ` and ${served.length - 3} more`}
        {pool !== null && `, pool ${pool}`}
      </span>
    </>
  );
}

const stateNames = {
  in_service: "in service",
  throttled: "throttled",
  out: "out",
  failing: "failing",
} as const;
const stateTones = { in_service: "ok", throttled: "warn", out: "bad", failing: "bad" } as const;

/** Whether it gets calls, and if not, until when, why, and what happens meanwhile. */
function State({ target }: { readonly target: LiveTargetView }) {
  const { state, why, out_until: until, keys_out: keysOut } = target;
  return (
    <div>
      <Badge tone={stateTones[state]}>{stateNames[state]}</Badge>{" "}
      {state !== "in_service" && until !== null && (
        <Countdown until={until} over="being tried: the next answer decides" />
      )}
      {state !== "in_service" && (
        <p className="small">
          {why !== null && `${sentence(why)} `}
          {meanwhile(target)}
        </p>
      )}
      {keysOut > 0 && state !== "failing" && (
        <p className="small">
          Out for {keysOut} {keysOut === 1 ? "key" : "keys"} alone, whose own calls failed.
        </p>
      )}
    </div>
  );
}

/** What the gateway does with the calls of an ill target: those of the same models take them. */
function meanwhile({ state, models }: LiveTargetView): string {
  if (state === "failing") return "Mend the upstream, or give its models other targets.";
  const aliases = [...new Set(models.map(({ alias }) => alias))].join(", ");
  return `Calls of ${aliases} go to their other targets and fallbacks, if they have any.`;
}

function sentence(text: string): string {
  const first = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(first) ? first : `${first}.`;
}

const gateColumns: readonly Column<Gate>[] = [
  [
    "Gate",
    ({ kind, name }) => (
      <>
        <strong>{name}</strong> <span className="muted">{kind}</span>
      </>
    ),
  ],
  [
    "In flight",
    ({ in_flight: count, bound }) => (
      <>
        <Count value={count} />
        {bound !== null && (
          <>
            {" "}
            of <Count value={bound} />
          </>
        )}
      </>
    ),
    "number",
  ],
  [
    "Waiting",
    ({ waiting }) =>
      waiting === 0 ? <Count value={0} /> : <Badge tone="warn">{waiting} wait</Badge>,
    "number",
  ],
];

function Gates({ gates }: { readonly gates: readonly Gate[] }) {
  if (gates.length === 0) return null;
  return (
    <Section title="Gates">
      <p className="muted">Places for concurrent calls. A call waits when all are taken.</p>
      <Table
        caption="Gates"
        columns={gateColumns}
        rows={gates}
        idOf={({ kind, name }) => `${kind}:${name}`}
      />
    </Section>
  );
}
