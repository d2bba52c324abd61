import type { CallRow } from "../../api/contract.ts";
import { useLive } from "../../api/live.ts";
import { useList } from "../../api/use-read.ts";
import { AppLink, Button } from "../../parts/button.tsx";
import { Cost } from "../../parts/money.tsx";
import { Count } from "../../parts/numbers.tsx";
import { Loaded, Page } from "../../parts/page.tsx";
import { RangePicker } from "../../parts/range-picker.tsx";
import { type Column, More, Table } from "../../parts/table.tsx";
import { durationText, Time } from "../../parts/time.tsx";
import { Views } from "../../parts/views.tsx";
import { useUrl } from "../../url.ts";
import { ExportLinks, FilterBar, type Filters, useFilters } from "../usage/filters.tsx";
import { NoCalls } from "../usage/usage.tsx";
import { OutcomeBadge, statusText } from "./call-words.tsx";
import { LastRefusals } from "./refusals.tsx";

/** What happened to the calls? */
export function CallsPage() {
  const filters = useFilters();
  const [{ view }] = useUrl({ view: "" });
  const isRefusals = view === "refusals";
  return (
    <Page
      title="Calls"
      question="What happened to a call? Choose one to see why."
      actions={
        !isRefusals && (
          <>
            <RangePicker />
            <ExportLinks filters={filters} />
          </>
        )
      }
    >
      <Views label="Views of calls" views={views} own={filters.set} />
      {isRefusals ? <LastRefusals filters={filters} /> : <Calls filters={filters} />}
    </Page>
  );
}

const views = [
  { value: "", label: "Calls" },
  { value: "refusals", label: "Last refusals" },
];
const pageRows = 50;

function Calls({ filters }: { readonly filters: Filters }) {
  const calls = useList(
    "/usage/calls",
    { ...filters.parameters, limit: pageRows },
    { isFrozen: true },
  );
  const { isAny, parameters, values } = filters;
  const rows = calls.query.data;
  const live = useLive("calls")?.get("newest");
  // Whether it fits filters is not known.
  const isNewer = !isAny && live !== undefined && live.started_at > (rows?.[0]?.started_at ?? "");
  const mayBeRefused = values.status.startsWith("4") || (isAny && rows?.length === 0);
  return (
    <>
      <div className="row spread">
        <FilterBar filters={filters} />
        {/* The list never changes by itself. A range that has ended has no new calls. */}
        {parameters["until"] === undefined && (
          <Button onPress={calls.query.refetch}>{isNewer ? "Show new calls" : "Refresh"}</Button>
        )}
      </div>
      {mayBeRefused && (
        <p className="muted">
          A request refused before it became a call, such as a 429 of a key out of requests, is not
          listed here: see{" "}
          <AppLink to="/calls" own={{ ...filters.set, view: "refusals" }}>
            the last refusals that fit
          </AppLink>
          .
        </p>
      )}
      <Loaded query={calls.query}>
        {(found) =>
          found.length === 0 ? <NoCalls filters={filters} /> : <CallTable calls={found} />
        }
      </Loaded>
      <More hasMore={calls.hasMore} isLoading={calls.isLoadingMore} onMore={calls.more} />
    </>
  );
}

function CallTable({ calls }: { readonly calls: readonly CallRow[] }) {
  const columns: readonly Column<CallRow>[] = [
    [
      "Began",
      ({ id, started_at: at }) => (
        <AppLink to={`/calls/${id}`}>
          <Time at={at} isExact />
        </AppLink>
      ),
    ],
    [
      "Application",
      ({ application, via }) => (via === null ? application : `${application} (${via})`),
    ],
    ["Model", ({ model }) => model],
    ["API", ({ dialect }) => dialect, "wide"],
    ["Outcome", (call) => <OutcomeBadge call={call} />],
    ["Status", ({ status, code }) => statusText(status, code)],
    ["Input", ({ input_tokens: tokens }) => <Count value={tokens} />, "wide number"],
    ["Output", ({ output_tokens: tokens }) => <Count value={tokens} />, "wide number"],
    ["Cost", ({ cost_usd: usd }) => <Cost usd={usd} />, "wide number"],
    [
      "First event",
      ({ first_event_ms: ms }) => (ms === null ? "" : durationText(ms)),
      "wide number",
    ],
    ["Duration", ({ duration_ms: ms }) => durationText(ms), "number"],
  ];
  return <Table caption="Calls" columns={columns} rows={calls} idOf={({ id }) => id} />;
}
