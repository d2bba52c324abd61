import { Link } from "wouter";
import type { CallRow } from "../../api/contract.ts";
import { useLive } from "../../api/live.ts";
import { useList } from "../../api/use-read.ts";
import { Button } from "../../parts/button.tsx";
import { Count } from "../../parts/numbers.tsx";
import { Loaded, Page } from "../../parts/page.tsx";
import { RangePicker } from "../../parts/range-picker.tsx";
import { type Column, More, Table } from "../../parts/table.tsx";
import { durationText, Time } from "../../parts/time.tsx";
import { Views } from "../../parts/views.tsx";
import { useHref, useUrl } from "../../url.ts";
import { ExportLinks, FilterBar, type Filters, useFilters } from "../usage/filters.tsx";
import { NoCalls } from "../usage/usage.tsx";
import { OutcomeBadge, statusText } from "./call-words.tsx";
import { LastRefusals } from "./refusals.tsx";

/** What happened to the calls? */
export function CallsPage() {
  const filters = useFilters();
  const [{ view }] = useUrl({ view: "calls" });
  const href = useHref();
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
      <Views
        label="Views of calls"
        views={views}
        current={view}
        href={(value) =>
          href("/calls", { ...filters.set, ...(value !== "calls" && { view: value }) })
        }
      />
      {isRefusals ? <LastRefusals filters={filters} /> : <Calls filters={filters} />}
    </Page>
  );
}

const views = [
  { value: "calls", label: "Calls" },
  { value: "refusals", label: "Last refusals" },
];
const pageRows = 50;

function Calls({ filters }: { readonly filters: Filters }) {
  const calls = useList(
    "/usage/calls",
    { ...filters.parameters, limit: pageRows },
    { isFrozen: true },
  );
  const href = useHref();
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
          <Link href={href("/calls", { ...filters.set, view: "refusals" })}>
            the last refusals that fit
          </Link>
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
  const href = useHref();
  const columns: readonly Column<CallRow>[] = [
    {
      title: "Began",
      cell: ({ id, started_at: at }) => (
        <Link href={href(`/calls/${id}`)}>
          <Time at={at} isExact />
        </Link>
      ),
    },
    {
      title: "Application",
      cell: ({ application, via }) => (via === null ? application : `${application} (${via})`),
    },
    { title: "Model", cell: ({ model }) => model },
    { title: "API", cell: ({ dialect }) => dialect, isWideOnly: true },
    { title: "Outcome", cell: (call) => <OutcomeBadge call={call} /> },
    { title: "Status", cell: ({ status, code }) => statusText(status, code) },
    {
      title: "Input",
      cell: ({ input_tokens: tokens }) => <Count value={tokens} />,
      isNumber: true,
      isWideOnly: true,
    },
    {
      title: "Output",
      cell: ({ output_tokens: tokens }) => <Count value={tokens} />,
      isNumber: true,
      isWideOnly: true,
    },
    {
      title: "First event",
      cell: ({ first_event_ms: ms }) => (ms === null ? "" : durationText(ms)),
      isNumber: true,
      isWideOnly: true,
    },
    { title: "Duration", cell: ({ duration_ms: ms }) => durationText(ms), isNumber: true },
  ];
  return <Table caption="Calls" columns={columns} rows={calls} idOf={({ id }) => id} />;
}
