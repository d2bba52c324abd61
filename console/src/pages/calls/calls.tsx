import { useEffect, useState } from "react";
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
        href={(value) => href("/calls", value === "calls" ? {} : { view: value })}
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
const mostNew = 100;

function Calls({ filters }: { readonly filters: Filters }) {
  const calls = useList(
    "/usage/calls",
    { ...filters.parameters, limit: pageRows },
    { isFrozen: true },
  );
  const rows = calls.query.data ?? [];
  return (
    <>
      <div className="row spread">
        <FilterBar filters={filters} />
        <NewCalls filters={filters} rows={rows} onShow={calls.query.refetch} />
      </div>
      <Loaded query={calls.query}>
        {(found) =>
          found.length === 0 ? <NoCalls filters={filters} /> : <CallTable calls={found} />
        }
      </Loaded>
      <More hasMore={calls.hasMore} isLoading={calls.isLoadingMore} onMore={calls.more} />
    </>
  );
}

/** The list never changes by itself: a button says how many calls are newer, and shows them. */
function NewCalls({
  filters: { parameters, isAny },
  rows,
  onShow,
}: {
  readonly filters: Filters;
  readonly rows: readonly CallRow[];
  readonly onShow: () => unknown;
}) {
  const [isLooking, setLooking] = useState(false);
  const newest = rows[0];
  const isOff = !isLooking || newest === undefined || parameters["until"] !== undefined;
  const since = newest?.started_at;
  const { query } = useList("/usage/calls", { ...parameters, since, limit: mostNew }, { isOff });
  useEffect(() => {
    const begin = (): void => setLooking(true);
    window.addEventListener("focus", begin);
    return () => window.removeEventListener("focus", begin);
  }, []);
  const look = (): unknown => (isOff ? setLooking(true) : query.refetch());
  const live = useLive("calls")?.get("newest");
  const isNewer = live !== undefined && live.started_at > (newest?.started_at ?? "");
  const known = new Set(rows.map(({ id }) => id));
  const fresh = isOff ? [] : (query.data ?? []).filter(({ id }) => !known.has(id));
  // A range that has ended has no new calls.
  if (parameters["until"] !== undefined) return null;
  if (fresh.length > 0) return <Button onPress={onShow}>{newText(fresh.length)}</Button>;
  // Whether it fits filters is known only once somebody looks.
  if (isNewer && !isAny) return <Button onPress={onShow}>Show new calls</Button>;
  return (
    <Button look="quiet" onPress={newest === undefined ? onShow : look}>
      {isOff || query.data === undefined ? "Look for new calls" : "No new calls: look again"}
    </Button>
  );
}

function newText(count: number): string {
  if (count >= mostNew - 1) return `${mostNew - 1} or more new calls`;
  return count === 1 ? "1 new call" : `${count} new calls`;
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
      isWideOnly: true,
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
