import type { KeyUseView, LiveItems, NeedView, Overview } from "../../api/contract.ts";
import { useLive } from "../../api/live.ts";
import { useRead, useRefresh } from "../../api/use-read.ts";
import { AppLink, Button } from "../../parts/button.tsx";
import { Chart } from "../../parts/chart.tsx";
import { Note } from "../../parts/error-note.tsx";
import { Held, LiveMark } from "../../parts/live.tsx";
import { exactText, failedOf } from "../../parts/numbers.tsx";
import { Loaded, Page, Section } from "../../parts/page.tsx";
import { clockText, Time } from "../../parts/time.tsx";
import { useSeesAll } from "../../shell/role.ts";
import { UseOfLimits } from "../keys/key-words.tsx";
import { DayFigures } from "./day-figures.tsx";
import { FirstCall } from "./first-call.tsx";
import { Needs } from "./needs.tsx";

const nearLimitPercent = 90;
const mostKeys = 6;

/** What needs me now? Of an account: is it working, and am I near a limit? */
export function HomePage() {
  const isOfAll = useSeesAll();
  const overview = useRead("/overview");
  const keys = useLive("keys");
  const targets = useLive(isOfAll ? "targets" : undefined);
  const processes = useLive(isOfAll ? "processes" : undefined);
  const gateways = useLive(isOfAll ? "gateways" : undefined);
  const live = isOfAll ? { keys, targets, gateways } : { keys };
  const { data } = overview;
  useRefresh("/overview", data && neededOf(live), data && saidOf(data.needs, live));
  const counted = isOfAll ? processes : keys;
  const openCalls = counted && sumOf([...counted.values()].map((each) => each.open_calls));
  return (
    <Page
      title="Home"
      question={isOfAll ? "What needs you now?" : "Is it working, and are you near a limit?"}
      actions={
        <>
          <LiveMark isKnown={counted !== undefined} />
          <Button onPress={overview.refetch}>Check now</Button>
        </>
      }
    >
      <Loaded query={overview}>
        {(view) => (
          <>
            {view.needs.length === 0 ? (
              <Note tone="ok">
                Nothing needs you. Checked at <Time at={view.checked_at} isExact />.
              </Note>
            ) : (
              <Needs needs={view.needs} />
            )}
            {view.other_machines.length > 0 && (
              <p className="muted">
                Targets and open calls are those of {view.machine}. Other machines:{" "}
                {view.other_machines.join(", ")}; see <AppLink to="/gateways">Gateways</AppLink>.
              </p>
            )}
            {view.sums === null && <FirstCall />}
            <NearestKeys view={view} live={keys} />
            <DayFigures view={view} openCalls={openCalls} />
            {view.sums !== null && <CallsChart view={view} />}
          </>
        )}
      </Loaded>
    </Page>
  );
}

interface LiveParts {
  readonly keys: ReadonlyMap<string, KeyUseView> | undefined;
  readonly targets?: ReadonlyMap<string, LiveItems["targets"]> | undefined;
  readonly gateways?: ReadonlyMap<string, LiveItems["gateways"]> | undefined;
}

/** Of what live numbers tell, that which needs the user. Undefined until all are known. */
function neededOf(live: LiveParts): string | undefined {
  if (Object.values(live).some((part) => part === undefined)) return undefined;
  const { keys, targets, gateways } = live;
  return linesOf([
    ...[...(keys?.values() ?? [])].flatMap(({ key_id: id, used_percent: used }) =>
      used > nearLimitPercent ? `key_near_limit ${id}` : [],
    ),
    ...[...(targets?.values() ?? [])].flatMap(({ id, state }) =>
      state === "in_service" ? [] : `target_${state} ${id}`,
    ),
    ...gatewayLines(gateways),
  ]);
}

/** The same of the answer, which tells nothing of gateways that could be compared. */
function saidOf(needs: readonly NeedView[], { gateways }: LiveParts): string {
  const own = needs.filter(({ kind }) => kind === "key_near_limit" || kind.startsWith("target_"));
  const lines = own.map(({ kind, subject }) => `${kind} ${subject.id}`);
  return linesOf([...lines, ...gatewayLines(gateways)]);
}

function gatewayLines(gateways: LiveParts["gateways"]): readonly string[] {
  return [...(gateways?.values() ?? [])].map((each) =>
    JSON.stringify({ ...each, keys_epoch: null }),
  );
}

function linesOf(lines: readonly string[]): string {
  return lines.toSorted().join("\n");
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
    <Section title="Limits, in the last 60 seconds" label="Limits">
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
    </Section>
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
  return (
    <div className="card stack tight">
      <h3>
        <AppLink to={`/keys/${use.key_id}`}>{use.application}</AppLink>{" "}
        <span className="muted">in {use.environment}</span>
      </h3>
      <UseOfLimits use={use} />
    </div>
  );
}

function CallsChart({ view: { hours } }: { readonly view: Overview }) {
  const all = [
    { id: "failed", name: "Failed", values: hours.map(failedOf) },
    { id: "left", name: "Caller left", values: hours.map((hour) => hour.abandoned_calls) },
    {
      id: "completed",
      name: "Completed",
      values: hours.map((hour) => hour.calls - hour.failed_calls),
    },
  ];
  return (
    <Chart
      title="Calls an hour"
      kind="area"
      times={hours.map(({ at }) => Date.parse(at))}
      isLastOpen
      series={all.filter(({ id, values }) => id !== "left" || values.some((count) => count > 0))}
      format={exactText}
      formatTime={clockText}
    />
  );
}

function sumOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, each) => sum + each, 0);
}
