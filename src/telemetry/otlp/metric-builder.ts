import type * as Sdk from "@opentelemetry/sdk-metrics";
import type { ModelKind } from "../../domain/model.ts";
import type { MetricFamily, MetricSeries } from "../metrics/families.ts";
import { metricNames, names, operations, providerName, schemaUrl } from "./conventions.ts";

type Attributes = Record<string, string | boolean>;
type Time = [seconds: number, nanoseconds: number];

export interface MetricSource {
  readonly sdk: Pick<typeof Sdk, "AggregationTemporality" | "DataPointType">;
  readonly version: string;
  /** Milliseconds since the epoch from which counters count. */
  readonly startedAt: number;
  readonly kindOf: (alias: string) => ModelKind | undefined;
}

/** The metrics that also have a name in the conventions. */
const conventional: Readonly<Record<string, string>> = {
  sluice_call_duration_seconds: metricNames.requestDuration,
  sluice_first_event_seconds: metricNames.firstToken,
};

/** Translates metrics: the same names, and those of the conventions where they fit. */
export function metricsOf(
  families: readonly MetricFamily[],
  nowMs: number,
  source: MetricSource,
): Sdk.ScopeMetrics {
  const { version, startedAt } = source;
  const times = { startTime: timeOf(startedAt), endTime: timeOf(nowMs) };
  const metrics = families
    .filter(({ series }) => series.length > 0)
    .flatMap((family) => {
      const own = metricOf(family, source, {
        ...times,
        attributesOf: ({ labels }) => ({ ...labels }),
      });
      const name = conventional[family.name];
      if (name === undefined) return [own];
      const attributesOf = (series: MetricSeries): Attributes => conventionalLabels(series, source);
      return [own, metricOf({ ...family, name }, source, { ...times, attributesOf })];
    });
  return { scope: { name: "sluice", schemaUrl, version }, metrics };
}

function conventionalLabels({ labels }: MetricSeries, { kindOf }: MetricSource): Attributes {
  const { model = "", streamed } = labels;
  return {
    [names.operation]: operations[kindOf(model) ?? "chat"],
    [names.provider]: providerName,
    [names.requestModel]: model,
    ...(streamed !== undefined && { [names.isStreamed]: streamed === "true" }),
  };
}

interface Points {
  readonly startTime: Time;
  readonly endTime: Time;
  readonly attributesOf: (series: MetricSeries) => Attributes;
}

function metricOf(
  { name, help: description, type, bounds = [], series }: MetricFamily,
  { sdk }: MetricSource,
  { attributesOf, ...times }: Points,
): Sdk.MetricData {
  const { DataPointType, AggregationTemporality } = sdk;
  const about = {
    // The value type of a point: a double.
    descriptor: { name, description, unit: unitOf(name), valueType: 1 },
    aggregationTemporality: AggregationTemporality.CUMULATIVE,
  };
  const pointsOf = <Value>(valueOf: (series: MetricSeries) => Value) =>
    series.map((each) => ({ ...times, attributes: attributesOf(each), value: valueOf(each) }));
  const dataPoints = pointsOf(({ value }) => value);
  switch (type) {
    case "gauge":
      return { ...about, dataPointType: DataPointType.GAUGE, dataPoints };
    case "counter":
      return { ...about, dataPointType: DataPointType.SUM, isMonotonic: true, dataPoints };
    case "histogram":
      return {
        ...about,
        dataPointType: DataPointType.HISTOGRAM,
        dataPoints: pointsOf(({ value: sum, counts = [] }) => ({
          buckets: { boundaries: [...bounds], counts: [...counts] },
          sum,
          count: counts.reduce((all, count) => all + count, 0),
        })),
      };
  }
}

function unitOf(name: string): string {
  if (/_seconds(_total)?$/.test(name) || name.startsWith("gen_ai.")) return "s";
  return name.endsWith("_bytes") ? "By" : "1";
}

function timeOf(milliseconds: number): Time {
  const seconds = Math.floor(milliseconds / 1000);
  return [seconds, Math.round((milliseconds - seconds * 1000) * 1e6)];
}
