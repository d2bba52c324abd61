import type { OTLPMetricExporter } from "@opentelemetry/exporter-metrics-otlp-proto";
import type * as Sdk from "@opentelemetry/sdk-metrics";
import type { ModelKind } from "../../domain/model.ts";
import { metricNames, names, operations, providerName, schemaUrl } from "./conventions.ts";
import type { MetricFamily, PageSample } from "./read-page.ts";

export type ResourceMetrics = Parameters<OTLPMetricExporter["export"]>[0];
type MetricData = ResourceMetrics["scopeMetrics"][number]["metrics"][number];
type Attributes = Record<string, string | boolean>;
type Time = [seconds: number, nanoseconds: number];

export interface MetricSource {
  readonly sdk: Pick<typeof Sdk, "AggregationTemporality" | "DataPointType">;
  readonly resource: ResourceMetrics["resource"];
  readonly version: string | undefined;
  /** Milliseconds since the epoch from which counters count. */
  readonly startedAt: number;
  readonly kindOf: (alias: string) => ModelKind | undefined;
}

/** The metrics that also have a name in the conventions. */
const conventional: Readonly<Record<string, string>> = {
  sluice_call_duration_seconds: metricNames.requestDuration,
  sluice_first_event_seconds: metricNames.firstToken,
};

/** Translates the page of metrics: the same names, and those of the conventions where they fit. */
export class MetricBuilder {
  readonly #source: MetricSource;

  constructor(source: MetricSource) {
    this.#source = source;
  }

  metricsOf(families: readonly MetricFamily[], nowMs: number): ResourceMetrics {
    const { resource, version } = this.#source;
    const scope = { name: "sluice", schemaUrl, ...(version !== undefined && { version }) };
    const times = { startTime: timeOf(this.#source.startedAt), endTime: timeOf(nowMs) };
    const metrics = families
      .filter(({ samples }) => samples.length > 0)
      .flatMap((family) => this.#metricsOf(family, times));
    return { resource, scopeMetrics: [{ scope, metrics }] };
  }

  #metricsOf(family: MetricFamily, times: Times): readonly MetricData[] {
    const own = this.#metric(family, times, ({ labels }) => labels);
    const name = conventional[family.name];
    if (name === undefined) return [own];
    return [own, this.#metric({ ...family, name }, times, (sample) => this.#attributes(sample))];
  }

  #attributes({ labels }: PageSample): Attributes {
    const { model = "", streamed } = labels;
    return {
      [names.operation]: operations[this.#source.kindOf(model) ?? "chat"],
      [names.provider]: providerName,
      [names.requestModel]: model,
      ...(streamed !== undefined && { [names.isStreamed]: streamed === "true" }),
    };
  }

  #metric(family: MetricFamily, times: Times, attributesOf: AttributesOf): MetricData {
    const { DataPointType, AggregationTemporality } = this.#source.sdk;
    const { name, help: description, type, samples } = family;
    const unit = unitOf(name);
    const about = {
      // The value type of a point: a double.
      descriptor: { name, description, unit, valueType: 1 },
      aggregationTemporality: AggregationTemporality.CUMULATIVE,
    };
    if (type === "histogram") {
      const dataPoints = histogramPoints(samples, times, attributesOf);
      return { ...about, dataPointType: DataPointType.HISTOGRAM, dataPoints };
    }
    const dataPoints = samples.map((sample) => ({
      ...times,
      attributes: attributesOf(sample),
      value: sample.value,
    }));
    if (type === "gauge") return { ...about, dataPointType: DataPointType.GAUGE, dataPoints };
    return { ...about, dataPointType: DataPointType.SUM, isMonotonic: true, dataPoints };
  }
}

interface Times {
  readonly startTime: Time;
  readonly endTime: Time;
}

type AttributesOf = (sample: PageSample) => Attributes;

interface Series {
  readonly sample: PageSample;
  readonly boundaries: number[];
  /** Counts of values up to each boundary, then of all. */
  readonly cumulative: number[];
  sum: number;
  count: number;
}

function histogramPoints(samples: readonly PageSample[], times: Times, attributesOf: AttributesOf) {
  const all = new Map<string, Series>();
  for (const { name, labels, value } of samples) {
    const { le, ...rest } = labels;
    const key = JSON.stringify(rest);
    const sample = { name, labels: rest, value };
    const known = all.get(key) ?? { sample, boundaries: [], cumulative: [], sum: 0, count: 0 };
    all.set(key, known);
    if (name.endsWith("_sum")) known.sum = value;
    else if (name.endsWith("_count")) known.count = value;
    else known.cumulative.push(value);
    if (le !== undefined && le !== "+Inf") known.boundaries.push(Number(le));
  }
  return [...all.values()].map(({ sample, boundaries, cumulative, sum, count }) => {
    const counts = cumulative.map((upTo, index) => upTo - (cumulative[index - 1] ?? 0));
    const value = { buckets: { boundaries, counts }, sum, count };
    return { ...times, attributes: attributesOf(sample), value };
  });
}

function unitOf(name: string): string {
  if (/_seconds(_total)?$/.test(name) || name.startsWith("gen_ai.")) return "s";
  return name.endsWith("_bytes") ? "By" : "1";
}

function timeOf(milliseconds: number): Time {
  const seconds = Math.floor(milliseconds / 1000);
  return [seconds, Math.round((milliseconds - seconds * 1000) * 1e6)];
}
