import type { ModelKind } from "../../domain/model.ts";
import type { OtlpSettings } from "../../domain/settings.ts";
import { MetricBuilder } from "./metric-builder.ts";
import { readPage } from "./read-page.ts";
import { hostname } from "node:os";
import { names } from "./conventions.ts";

/** Sends pages of metrics to a collector. */
export interface MetricsSender {
  /** Resolves once the collector has the page; rejects if it does not within the timeout. */
  send(page: string, nowMs: number): Promise<void>;
  close(): Promise<void>;
}

export interface MetricsOrigin extends OtlpIdentity {
  readonly startedAt: number;
  readonly kindOf: (alias: string) => ModelKind | undefined;
}

export async function openMetricsSender(
  settings: OtlpSettings,
  origin: MetricsOrigin,
): Promise<MetricsSender> {
  const [sdk, { resourceFromAttributes }, { OTLPMetricExporter }] = await Promise.all([
    import("@opentelemetry/sdk-metrics"),
    import("@opentelemetry/resources"),
    import("@opentelemetry/exporter-metrics-otlp-proto"),
  ]);
  const exporter = new OTLPMetricExporter(exporterOptions(settings, "metrics"));
  const resource = resourceFromAttributes(resourceAttributes(origin));
  const builder = new MetricBuilder({ ...origin, sdk, resource });
  return {
    send: (page, nowMs) =>
      new Promise((resolve, reject) => {
        exporter.export(builder.metricsOf(readPage(page), nowMs), ({ code, error }) => {
          if (code === 0) resolve();
          else reject(error ?? new Error("the collector did not take the metrics"));
        });
      }),
    close: () => exporter.shutdown(),
  };
}

/** The process that sends telemetry. */
export interface OtlpIdentity {
  /** Number of the process. */
  readonly process: number;
  readonly version: string | undefined;
}

/** Options of the exporter of a signal. */
export function exporterOptions(settings: OtlpSettings, signal: "traces" | "metrics") {
  const { endpoint, headers, timeoutMs } = settings;
  return {
    url: `${endpoint}/v1/${signal}`,
    headers: Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [name, value.reveal()]),
    ),
    timeoutMillis: timeoutMs,
  };
}

export function resourceAttributes({ process: number, version }: OtlpIdentity) {
  const host = hostname();
  return {
    [names.serviceName]: "sluice",
    [names.serviceInstanceId]: `${host}/${process.pid}/${number}`,
    [names.hostName]: host,
    [names.processPid]: process.pid,
    ...(version !== undefined && { [names.serviceVersion]: version }),
  };
}
