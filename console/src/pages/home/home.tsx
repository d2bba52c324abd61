import { useEffect, useRef } from "react";
import { Link } from "wouter";
import type { KeyUseView, LiveItems, NeedView, Overview } from "../../api/contract.ts";
import { useLive } from "../../api/live.ts";
import { useCache, useRead } from "../../api/use-read.ts";
import { Button } from "../../parts/button.tsx";
import { Chart } from "../../parts/chart.tsx";
import { Note } from "../../parts/error-note.tsx";
import { Held, LiveMark } from "../../parts/live.tsx";
import { exactText } from "../../parts/numbers.tsx";
import { Loaded, Page, type Reading } from "../../parts/page.tsx";
import { clockText, Time } from "../../parts/time.tsx";
import { useSeesAll } from "../../shell/role.ts";
import { useHref } from "../../url.ts";
import { UseOfLimits } from "../keys/key-words.tsx";
import { DayFigures } from "./day-figures.tsx";
import { FirstCall } from "./first-call.tsx";
import { Needs } from "./needs.tsx";

const nearLimitPercent = 90;
const mostKeys = 6;

export function HomePage() {
  return useSeesAll() ? <HomeOfAll /> : <HomeOfAccount />;
}

/** What needs me now? */
function HomeOfAll() {
  const overview = useRead("/overview");
  const keys = useLive("keys");
  const targets = useLive("targets");
  const processes = useLive("processes");
  const gateways = useLive("gateways");
  useRefresh(overview.data, { keys, targets, gateways });
  const openCalls = processes && sumOf([...processes.values()].map((each) => each.open_calls));
  return (
    <Home question="What needs you now?" overview={overview} isLive={targets !== undefined}>
      {(view) => (
        <>
          <DayFigures view={view} openCalls={openCalls} />
          {view.keys.length > 0 && <NearestKeys view={view} live={keys} />}
        </>
      )}
    </Home>
  );
}

/** Is it working, and am I near a limit? */
function HomeOfAccount() {
  const overview = useRead("/overview");
  const keys = useLive("keys");
  useRefresh(overview.data, { keys });
  const openCalls = keys && sumOf([...keys.values()].map((each) => each.open_calls));
  return (
    <Home
      question="Is it working, and are you near a limit?"
      overview={overview}
      isLive={keys !== undefined}
    >
      {(view) => (
        <>
          <NearestKeys view={view} live={keys} />
          <DayFigures view={view} openCalls={openCalls} />
        </>
      )}
    </Home>
  );
}

function Home({
  question,
  overview,
  isLive,
  children,
}: {
  readonly question: string;
  readonly overview: Reading<Overview>;
  readonly isLive: boolean;
  readonly children: (view: Overview) => React.ReactNode;
}) {
  return (
    <Page
      title="Home"
      question={question}
      actions={
        <>
          <LiveMark isKnown={isLive} />
          <Button onPress={overview.refetch}>Check now</Button>
        </>
      }
    >
      <Loaded query={overview}>
        {(view) => (
          <>
            {view.needs.length === 0 ? (
              <Note tone="ok">
                <p>
                  <span aria-hidden="true">✓ </span>
                  Nothing needs you. Checked at <Time at={view.checked_at} isExact />.
                </p>
              </Note>
            ) : (
              <Needs needs={view.needs} />
            )}
            {view.other_machines.length > 0 && (
              <p className="muted">
                Targets and open calls are those of {view.machine}. Other machines:{" "}
                {view.other_machines.join(", ")}; see <GatewaysLink />.
              </p>
            )}
            {view.sums === null && <FirstCall />}
            {children(view)}
            {view.sums !== null && <CallsChart view={view} />}
          </>
        )}
      </Loaded>
    </Page>
  );
}

function GatewaysLink() {
  const href = useHref();
  return <Link href={href("/gateways")}>Gateways</Link>;
}

interface LiveParts {
  readonly keys: ReadonlyMap<string, KeyUseView> | undefined;
  readonly targets?: ReadonlyMap<string, LiveItems["targets"]> | undefined;
  readonly gateways?: ReadonlyMap<string, LiveItems["gateways"]> | undefined;
}

/** Asks again when live numbers tell that something else needs the user than was said. */
function useRefresh(view: Overview | undefined, live: LiveParts): void {
  const cache = useCache();
  const seen = useRef<string>(undefined);
  const isKnown = view !== undefined && Object.values(live).every((part) => part !== undefined);
  const needed = [
    ...[...(live.keys?.values() ?? [])].flatMap(({ key_id: id, used_percent: used }) =>
      used > nearLimitPercent ? `key_near_limit ${id}` : [],
    ),
    ...[...(live.targets?.values() ?? [])].flatMap(({ id, state }) =>
      state === "in_service" ? [] : `target_${state} ${id}`,
    ),
  ];
  const gateways = [...(live.gateways?.values() ?? [])]
    .map((each) => JSON.stringify({ ...each, keys_epoch: null }))
    .join("\n");
  const current = isKnown ? `${needed.toSorted().join("\n")}\n${gateways}` : undefined;
  const said = isKnown ? `${saidOf(view.needs)}\n${gateways}` : undefined;
  useEffect(() => {
    if (current === undefined) return;
    const before = seen.current ?? said;
    seen.current = current;
    if (current !== before) cache.refresh("/overview");
  }, [cache, current, said]);
}

/** In the words of `useRefresh`. */
function saidOf(needs: readonly NeedView[]): string {
  const live = ["key_near_limit", "target_failing", "target_out", "target_throttled"];
  const own = needs.filter(({ kind }) => live.includes(kind));
  return own
    .map(({ kind, subject }) => `${kind} ${subject.id}`)
    .toSorted()
    .join("\n");
}

/** The keys that were nearest to their limits when the page asked, with what they use now. */
function NearestKeys({
  view,
  live,
}: {
  readonly view: Overview;
  readonly live: ReadonlyMap<string, KeyUseView> | undefined;
}) {
  return (
    <section className="stack tight" aria-label="Limits">
      <h2>Limits, in the last 60 seconds</h2>
      {view.keys.length === 0 ? (
        <p className="muted">No key was used in the last minute, so all limits are free.</p>
      ) : (
        <Held rows={view.keys.slice(0, mostKeys)} idOf={({ key_id: id }) => id}>
          {(keys) => (
            <div className="grid">
              {keys.map((key) => (
                <KeyUse key={key.key_id} use={live?.get(key.key_id) ?? unused(key, live)} />
              ))}
            </div>
          )}
        </Held>
      )}
    </section>
  );
}

/** Live numbers leave out keys without a call in the last minute. */
function unused(key: KeyUseView, live: unknown): KeyUseView {
  if (live === undefined) return key;
  return {
    ...key,
    open_calls: 0,
    requests: { ...key.requests, used: 0 },
    tokens: { ...key.tokens, used: 0 },
  };
}

function KeyUse({ use }: { readonly use: KeyUseView }) {
  const href = useHref();
  return (
    <div className="card stack tight">
      <h3>
        <Link href={href(`/keys/${use.key_id}`)}>{use.application}</Link>{" "}
        <span className="muted">in {use.environment}</span>
      </h3>
      <UseOfLimits use={use} />
    </div>
  );
}

function CallsChart({ view: { hours } }: { readonly view: Overview }) {
  return (
    <Chart
      title="Calls an hour"
      kind="area"
      times={hours.map(({ at }) => Date.parse(at))}
      isLastOpen
      series={[
        { id: "failed", name: "Failed", values: hours.map(({ failed_calls: failed }) => failed) },
        {
          id: "completed",
          name: "Completed",
          values: hours.map(({ calls, failed_calls: failed }) => calls - failed),
        },
      ]}
      format={exactText}
      formatTime={clockText}
    />
  );
}

function sumOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, each) => sum + each, 0);
}
