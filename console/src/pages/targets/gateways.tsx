import type { LiveItems, Processes, ProcessRowView } from "../../api/contract.ts";
import { useLive } from "../../api/live.ts";
import { useRead, useRefresh } from "../../api/use-read.ts";
import { Badge } from "../../parts/badge.tsx";
import { Note } from "../../parts/error-note.tsx";
import { LiveMark } from "../../parts/live.tsx";
import { Count, percentText } from "../../parts/numbers.tsx";
import { Loaded, Page } from "../../parts/page.tsx";
import { type Column, Table } from "../../parts/table.tsx";
import { Time } from "../../parts/time.tsx";

interface Row extends ProcessRowView {
  /** Changes of keys that others have and it has not; null: it does not tell. */
  readonly behind: number | null;
  /** Only of the machine that answers. */
  readonly now: LiveItems["processes"] | undefined;
}

/** Are all gateways alike, ready and current? */
export function GatewaysPage() {
  const processes = useRead("/processes");
  const live = useLive("processes");
  const gateways = useLive("gateways");
  useRefresh("/processes", gateways && JSON.stringify([...gateways.values()]));
  return (
    <Page
      title="Gateways"
      question="Are all processes alike, ready and current?"
      actions={<LiveMark isKnown={live !== undefined} />}
    >
      <Loaded query={processes}>
        {(view) => (
          <>
            <Verdict view={view} />
            <Table
              caption="Processes"
              columns={columns}
              rows={rowsOf(view, live)}
              idOf={({ id }) => id}
            />
          </>
        )}
      </Loaded>
    </Page>
  );
}

function rowsOf(
  { machine, data }: Processes,
  live: ReadonlyMap<string, LiveItems["processes"]> | undefined,
): readonly Row[] {
  const newest = Math.max(0, ...data.map(({ keys_epoch: epoch }) => epoch ?? 0));
  return data
    .map((row) => ({
      ...row,
      behind: row.keys_epoch === null ? null : newest - row.keys_epoch,
      now: row.name === machine && row.live ? live?.get(String(row.number)) : undefined,
    }))
    .toSorted((one, other) => one.name.localeCompare(other.name) || one.number - other.number);
}

/** What is alike, or what to do about what is not. */
function Verdict({
  view: { data, config_differs: differs, warnings },
}: {
  readonly view: Processes;
}) {
  const live = data.filter((row) => row.live);
  const versions = [...new Set(live.map(({ version }) => version))];
  const problems = [
    ...(differs
      ? [
          "Processes have loaded different configurations. Give all machines the same file, and reload " +
            "those whose file differs below.",
        ]
      : []),
    ...(versions.length > 1
      ? [`Processes run different versions: ${versions.join(", ")}. Finish the upgrade.`]
      : []),
    ...data.flatMap((row) =>
      row.live && row.not_ready !== null
        ? [`Process ${row.number} of ${row.name} is not ready: ${row.not_ready}`]
        : [],
    ),
    ...warnings,
  ];
  if (problems.length === 0) {
    return (
      <Note tone="ok">
        {live.length === 1
          ? "The one process is ready."
          : `All ${live.length} processes are ready and alike.`}
      </Note>
    );
  }
  return (
    <>
      {problems.map((problem) => (
        <Note key={problem} tone="warn">
          {problem}
        </Note>
      ))}
    </>
  );
}

const columns: readonly Column<Row>[] = [
  [
    "Process",
    ({ name, number }) => (
      <>
        <strong>{name}</strong> <span className="muted">process {number}</span>
      </>
    ),
  ],
  ["State", (row) => <State row={row} />],
  [
    "Keys",
    ({ behind }) => {
      if (behind === null) return <span className="muted">not told</span>;
      return behind === 0 ? "current" : `${behind} changes behind`;
    },
  ],
  ["Version", ({ version }) => version, "wide"],
  [
    "Configuration",
    ({ config_digest: digest, configured_at: at }) => (
      <>
        <code>{digest?.slice(0, 8) ?? "no file"}</code>
        <br />
        <span className="muted small">
          loaded <Time at={at} />
        </span>
      </>
    ),
    "wide",
  ],
  [
    "Open calls",
    ({ now }) =>
      now === undefined ? (
        <Elsewhere />
      ) : (
        <>
          <Count value={now.open_calls} /> of <Count value={now.load_bound} />
        </>
      ),
    "number",
  ],
  [
    "Spool",
    ({ now }) => {
      if (now === undefined) return <Elsewhere />;
      const share = now.spool_bytes / Math.max(1, now.spool_limit_bytes);
      return share > 0.8 ? (
        <Badge tone="bad">{percentText(share)} full</Badge>
      ) : (
        <Count value={now.spool_bytes} unit="bytes" />
      );
    },
    "wide number",
  ],
];

/** The console knows it of its own machine alone. */
function Elsewhere() {
  return <span className="muted">not told</span>;
}

function State({ row }: { readonly row: Row }) {
  if (!row.live) {
    return <Badge tone="bad">silent for {Math.round(row.silent_ms / 1_000)} s</Badge>;
  }
  if (!row.ready) return <Badge tone="bad">not ready</Badge>;
  if (row.degraded === null) return <Badge tone="ok">ready</Badge>;
  return (
    <>
      <Badge tone="warn">degraded</Badge>
      <p className="small">{row.degraded}</p>
    </>
  );
}
