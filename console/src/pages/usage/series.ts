/** From the points of the admin API to the series of a chart and the rows of a table. */
import type { UsagePoint, UsageSeries } from "../../api/contract.ts";
import { durationText } from "../../parts/time.tsx";
import { sumOfUsd, usdText } from "../../parts/money.tsx";
import { compactText, failedOf } from "../../parts/numbers.tsx";
import { outcomeText } from "../calls/call-words.tsx";
import { dimensions } from "./filters.tsx";

export type Step = UsageSeries["step"];

interface Metric {
  readonly label: string;
  /** Null: there is none, which is a gap. */
  readonly of: (point: UsagePoint) => number | null;
  /** Percentiles are neither stacked nor added. */
  readonly kind: "area" | "line";
  readonly rank: "calls" | "tokens" | "cost";
  readonly format: (value: number) => string;
}

const count = { kind: "area", rank: "calls", format: compactText } as const;
const tokens = { kind: "area", rank: "tokens", format: compactText } as const;
const cost = { kind: "area", rank: "cost", format: usdText } as const;
const time = { kind: "line", rank: "calls", format: durationText } as const;

export const metrics = {
  tokens: { label: "Tokens", of: (point) => point.input_tokens + point.output_tokens, ...tokens },
  input: { label: "Input tokens", of: (point) => point.input_tokens, ...tokens },
  output: { label: "Output tokens", of: (point) => point.output_tokens, ...tokens },
  cached: { label: "Cached input tokens", of: (point) => point.cached_input_tokens, ...tokens },
  cost: { label: "Cost", of: (point) => Number(point.cost_usd ?? 0), ...cost },
  calls: { label: "Calls", of: (point) => point.calls, ...count },
  failed: { label: "Failed calls", of: failedOf, ...count },
  first: {
    label: "First event, median",
    of: (point) => point.first_event_ms?.p50 ?? null,
    ...time,
  },
  first95: {
    label: "First event, 95 %",
    of: (point) => point.first_event_ms?.p95 ?? null,
    ...time,
  },
  duration: { label: "Duration, median", of: (point) => point.duration_ms?.p50 ?? null, ...time },
  duration95: { label: "Duration, 95 %", of: (point) => point.duration_ms?.p95 ?? null, ...time },
} as const satisfies Readonly<Record<string, Metric>>;

export function metricOf(name: string): Metric {
  return Object.entries<Metric>(metrics).find(([each]) => each === name)?.[1] ?? metrics.tokens;
}

export const stepsMs: Readonly<Record<Step, number>> = {
  minute: 60_000,
  hour: 3_600_000,
  day: 86_400_000,
};

/** Most steps of one answer of the admin API. */
const mostSteps = 1_500;

export function stepOf(name: string, lengthMs: number): Step {
  if (name === "minute" || name === "hour" || name === "day") return name;
  if (lengthMs <= 3 * stepsMs.hour) return "minute";
  return lengthMs <= 7 * stepsMs.day ? "hour" : "day";
}

export function isShortEnough(step: Step, lengthMs: number): boolean {
  return lengthMs / stepsMs[step] < mostSteps;
}

export interface UsageGroup {
  readonly id: string;
  readonly name: string;
  /** Null: what has none, such as calls without an error; undefined: several groups together. */
  readonly value: string | null | undefined;
  readonly points: ReadonlyMap<number, UsagePoint>;
  readonly sums: UsageSums;
}

export type UsageSums = Readonly<Record<(typeof summed)[number], number>> & {
  readonly cost_usd: string | null;
};

const summed = [
  "calls",
  "failed_calls",
  "input_tokens",
  "cached_input_tokens",
  "cache_write_tokens",
  "output_tokens",
  "abandoned_calls",
  "unpriced_calls",
] as const;

/** The groups of an answer, the largest first, the sum of the others last. */
export function groupsOf(series: UsageSeries, by: string, metric: Metric): UsageGroup[] {
  const found = Map.groupBy(series.data, ({ group }) => JSON.stringify(group));
  const groups = [...found].map(([id, points]) => groupOf(id, points, by));
  const size = ({ points }: UsageGroup): number =>
    [...points.values()].reduce((sum, point) => sum + (metric.of(point) ?? 0), 0);
  const isOther = ({ value }: UsageGroup): boolean => by !== "" && value === undefined;
  const sorted = groups.toSorted(
    (one, other) => Number(isOther(one)) - Number(isOther(other)) || size(other) - size(one),
  );
  const names = sorted.map(({ name }) => name);
  // Two keys may have one name.
  return sorted.map((group) =>
    names.filter((name) => name === group.name).length > 1 && typeof group.value === "string"
      ? { ...group, name: `${group.name} (${group.value})` }
      : group,
  );
}

function groupOf(id: string, points: readonly UsagePoint[], by: string): UsageGroup {
  const [first] = points;
  const value = by === "" ? undefined : first?.group[by];
  const text = typeof value === "number" ? String(value) : value;
  return {
    id,
    name: by === "" ? "All calls" : nameOf(text, first?.names[by], by),
    value: text,
    points: new Map(points.map((point) => [Date.parse(point.at), point])),
    sums: sumsOf(points),
  };
}

function nameOf(
  value: string | null | undefined,
  name: string | null | undefined,
  by: string,
): string {
  if (value === undefined) return "Other";
  if (value !== null) return by === "outcome" ? outcomeText(value) : (name ?? value);
  return by === "code" ? "no error" : "none";
}

/** A tag, such as `tag:team`, is grouped by its key. */
export function groupName(by: string): string {
  return new Map<string, string>(Object.entries(dimensions)).get(by) ?? by.replace("tag:", "Tag ");
}

export function sumsOf(points: readonly UsagePoint[]): UsageSums {
  const sum = (name: (typeof summed)[number]): number =>
    points.reduce((total, point) => total + point[name], 0);
  // They are all of the names.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return {
    ...Object.fromEntries(summed.map((name) => [name, sum(name)])),
    cost_usd: sumOfUsd(points.map((point) => point.cost_usd)),
  } as UsageSums;
}

/** The beginnings of all steps, also of those without calls, which answers leave out. */
export function timesOf({ since, until, step }: UsageSeries): number[] {
  const length = stepsMs[step];
  const first = Math.floor(Date.parse(since) / length) * length;
  const count = Math.ceil((Date.parse(until) - first) / length);
  return Array.from({ length: count }, (_, index) => first + index * length);
}
