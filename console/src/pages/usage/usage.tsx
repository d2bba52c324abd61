import { useMemo, useRef } from "react";
import type { UsageSeries } from "../../api/contract.ts";
import { useRead } from "../../api/use-read.ts";
import { AppLink, Button } from "../../parts/button.tsx";
import { Chart, mostSeries } from "../../parts/chart.tsx";
import { Empty } from "../../parts/error-note.tsx";
import { Select } from "../../parts/field.tsx";
import { Cost, unpricedText } from "../../parts/money.tsx";
import { Count, failedOf, percentText, Tile, Tokens } from "../../parts/numbers.tsx";
import { Loaded, Page } from "../../parts/page.tsx";
import { lengthOf, RangePicker, rangeOf } from "../../parts/range-picker.tsx";
import { type Column, Table } from "../../parts/table.tsx";
import { clockText, instantText, utcDayText, zoneText } from "../../parts/time.tsx";
import { useUrl } from "../../url.ts";
import {
  dimensions,
  ExportLinks,
  FilterBar,
  type Filters,
  useDimensions,
  useFilters,
} from "./filters.tsx";
import {
  groupName,
  groupsOf,
  isShortEnough,
  metricOf,
  metrics,
  type Step,
  stepOf,
  stepsMs,
  sumsOf,
  timesOf,
  type UsageGroup,
} from "./series.ts";

/** What was used, and what drove it? */
export function UsagePage() {
  const filters = useFilters();
  const [view, change] = useUrl({ metric: "tokens", by: "key", step: "" });
  const names = useDimensions();
  const [named, tagKey = ""] = view.by.split(":");
  const chosen = names.find((name) => name === named) ?? "";
  const by = chosen === "tag" ? tagKey && view.by : chosen;
  const length = lengthOf(filters.range);
  const step = stepOf(view.step, length);
  const metric = metricOf(view.metric);
  const series = useRead("/usage/series", {
    ...filters.parameters,
    by,
    step,
    limit: mostSeries,
    rank: metric.rank,
    rest: "true",
  });
  return (
    <Page
      title="Usage"
      question="What was used, and what drove it?"
      actions={
        <>
          <RangePicker />
          <ExportLinks filters={filters} />
        </>
      }
    >
      <div className="row end">
        <Select
          label="Metric"
          value={view.metric}
          options={Object.entries(metrics).map(([value, { label }]) => ({ value, label }))}
          onChange={(value) => change({ metric: value })}
        />
        <Select
          label="Group by"
          value={chosen === "" ? "none" : chosen}
          options={[
            ...names.map((value) => ({ value, label: dimensions[value] })),
            { value: "none", label: "Nothing" },
          ]}
          onChange={(value) => change({ by: value })}
        />
        {chosen === "tag" && (
          <input
            className="input"
            aria-label="Tag key"
            placeholder="Tag key, then Enter"
            defaultValue={tagKey}
            onKeyDown={({ key, currentTarget: { value } }) => {
              if (key === "Enter") change({ by: `tag:${value.trim()}` });
            }}
          />
        )}
        <Select
          label="Step"
          value={view.step}
          options={stepOptions(length)}
          onChange={(value) => change({ step: value })}
        />
        <FilterBar filters={filters} />
      </div>
      <Loaded query={series}>
        {(found) =>
          found.data.length === 0 ? (
            <NoCalls filters={filters} />
          ) : (
            <Shown series={found} by={by} metricName={view.metric} />
          )
        }
      </Loaded>
    </Page>
  );
}

function stepOptions(lengthMs: number) {
  const steps = (["minute", "hour", "day"] as const).filter((step) =>
    isShortEnough(step, lengthMs),
  );
  return [
    { value: "", label: "By the range" },
    ...steps.map((value) => ({ value, label: `A ${value}`.replace("A hour", "An hour") })),
  ];
}

/** What lists and charts of calls show when there is none. */
export function NoCalls({ filters }: { readonly filters: Filters }) {
  const [, change] = useUrl({ range: "" });
  return (
    <Empty
      sentence={filters.isAny ? "No call fits these filters." : "No calls in this range."}
      action={
        filters.isAny ? (
          <Button onPress={filters.clear}>Remove the filters</Button>
        ) : (
          <Button onPress={() => change({ range: "7d" })}>Show the last 7 days</Button>
        )
      }
      command="sluice usage --since 7d"
    />
  );
}

interface ShownProps {
  readonly series: UsageSeries;
  readonly by: string;
  readonly metricName: string;
}

function Shown({ series, by, metricName }: ShownProps) {
  const zoom = useZoom(stepsMs[series.step]);
  const metric = metricOf(metricName);
  const total = sumsOf(series.data);
  const { groups, times, lines } = useMemo(() => {
    const chosen = groupsOf(series, by, metric);
    const all = timesOf(series);
    const none = metric.kind === "area" ? 0 : null;
    return {
      groups: chosen,
      times: all,
      // What has no price has no cost, which is not 0.
      lines: (metric.rank === "cost" ? chosen.filter(hasPrice) : chosen).map(
        ({ id, name, value, points }) => ({
          id: value ?? id,
          name,
          isOther: by !== "" && value === undefined,
          values: all.map((at) => {
            const point = points.get(at);
            return point === undefined ? none : metric.of(point);
          }),
        }),
      ),
    };
  }, [series, by, metric]);
  const zone = series.step === "day" ? "days in UTC" : `times in ${zoneText()}`;
  return (
    <>
      <div className="grid tiles">
        <Tile name="Calls" note={`${percentText(failedOf(total) / total.calls)} failed`}>
          <Count value={total.calls} isCompact />
        </Tile>
        <Tile name="Input tokens" note="including cached">
          <Count value={total.input_tokens} isCompact />
        </Tile>
        <Tile name="Output tokens">
          <Count value={total.output_tokens} isCompact />
        </Tile>
        <Tile name="Cost" note={unpricedText(total.unpriced_calls)}>
          <Cost usd={total.cost_usd} unpricedCalls={total.unpriced_calls} />
        </Tile>
      </div>
      <Tokens counts={total} />
      <Chart
        title={`${metric.label} by ${series.step}, ${zone}`}
        times={times}
        series={lines}
        kind={metric.kind}
        isLastOpen={(times.at(-1) ?? 0) + stepsMs[series.step] > Date.parse(series.until)}
        format={metric.format}
        formatTime={(at) => stepText(at, series.step)}
        formatTick={(at) => tickText(at, series.step, times.length)}
        onZoom={zoom}
      />
      {by !== "" && <Groups groups={groups} by={by} total={total.calls} />}
    </>
  );
}

function hasPrice({ sums }: UsageGroup): boolean {
  return sums.cost_usd !== null;
}

/** A drag shows the steps whose points it covers; a double click goes back to what it was. */
function useZoom(stepMs: number) {
  const [{ range }, change] = useUrl({ range: "24h" });
  const wider = useRef<string[]>([]);
  return (part: { readonly from: number; readonly to: number } | undefined): void => {
    if (part === undefined) {
      const before = wider.current.pop();
      if (before !== undefined) change({ range: before });
    } else {
      wider.current.push(range);
      const nearest = (at: number): number => Math.round(at / stepMs) * stepMs;
      change({ range: rangeOf(nearest(part.from), nearest(part.to) + stepMs) });
    }
  };
}

function stepText(at: number, step: Step): string {
  return step === "day" ? utcDayText(at) : instantText(at);
}

/** Of the axis, where a day is clear from the range. */
function tickText(at: number, step: Step, count: number): string {
  if (step === "day") return utcDayText(at);
  return count * stepsMs[step] <= stepsMs.day ? clockText(at) : instantText(at);
}

interface GroupsProps {
  readonly groups: readonly UsageGroup[];
  readonly by: string;
  /** Of all calls. */
  readonly total: number;
}

function Groups({ groups, by, total }: GroupsProps) {
  const { set } = useFilters();
  const [filter = "", key] = by.split(":");
  const prefix = key === undefined ? "" : `${key}=`;
  const columns: readonly Column<UsageGroup>[] = [
    [
      groupName(by),
      ({ name, value }) =>
        typeof value === "string" ? (
          <AppLink to="/calls" own={{ ...set, [filter]: prefix + value }}>
            {name}
          </AppLink>
        ) : (
          name
        ),
    ],
    ["Calls", ({ sums }) => <Count value={sums.calls} />, "number"],
    ["Of all calls", ({ sums }) => percentText(sums.calls / total), "wide number"],
    ["Failed", ({ sums }) => <Count value={failedOf(sums)} />, "number"],
    ["Input tokens", ({ sums }) => <Count value={sums.input_tokens} />, "number"],
    ["Cached", ({ sums }) => <Count value={sums.cached_input_tokens} />, "wide number"],
    ["Output tokens", ({ sums }) => <Count value={sums.output_tokens} />, "number"],
    [
      "Cost",
      ({ sums }) => <Cost usd={sums.cost_usd} unpricedCalls={sums.unpriced_calls} />,
      "number",
    ],
  ];
  return (
    <section className="stack tight" aria-label="Groups">
      <div className="row spread">
        <h2>{groupName(by)}</h2>
        <a
          className="button plain"
          href={`data:text/csv;charset=utf-8,${encodeURIComponent(csvOf(groups, by))}`}
          download={`usage-by-${by.replace(":", "-")}.csv`}
        >
          Export this table (CSV)
        </a>
      </div>
      <p className="muted">Choose one to see its calls.</p>
      <Table caption="Groups" columns={columns} rows={groups} idOf={({ id }) => id} />
    </section>
  );
}

/** The table as a file. */
function csvOf(groups: readonly UsageGroup[], by: string): string {
  const head = [by, ...Object.keys(sumsOf([]))];
  const rows = groups.map(({ name, sums }) => [name, ...Object.values(sums)]);
  return [head, ...rows].map((row) => `${row.map(csvCell).join(",")}\r\n`).join("");
}

/** What a spreadsheet would take for a formula gets an apostrophe, as in the export of calls. */
function csvCell(value: string | number | null): string {
  const text = String(value ?? "").replaceAll(/(^|;)(["\s]*)(?=[=+\-@＝＋－＠])/g, "$1$2'");
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
