import type {
  PeriodicExportingMetricReader,
  PushMetricExporter,
  ResourceMetrics,
} from "@opentelemetry/sdk-metrics";
import type { Clock } from "../../domain/clock.ts";
import { isSameValue } from "../../domain/json-object.ts";
import type { OtlpSettings } from "../../domain/settings.ts";
import { hasSettledWithin } from "../../domain/waiting/wait.ts";
import type { MetricFamily } from "../metrics/families.ts";
import { MetricBuilder, type MetricSource } from "./metric-builder.ts";
import { exporterOptions, type OtlpIdentity, resourceAttributes } from "./otlp-identity.ts";

export interface MetricsExportOptions extends Omit<MetricSource, "sdk" | "version"> {
  readonly clock: Clock;
  readonly identity: OtlpIdentity;
  /** The metrics of the process. */
  readonly collect: () => Promise<readonly MetricFamily[]>;
  readonly on: {
    sent(times: number): void;
    failed(times: number, error: unknown): void;
  };
}

/** How much longer than its timeout a request of the exporter may take. */
const graceMs = 500;
/** Longest wait at the end of the process. */
const lastMs = 1_000;

/** Sends the metrics of the process at intervals. */
export class MetricsExport {
  readonly #options: MetricsExportOptions;
  #settings: OtlpSettings | undefined;
  #reader: Promise<PeriodicExportingMetricReader> | undefined;

  constructor(options: MetricsExportOptions) {
    this.#options = options;
  }

  /** Follows the configuration. */
  configure(otlp: OtlpSettings | undefined): void {
    const settings = otlp?.sendsMetrics === true ? otlp : undefined;
    if (isSameValue(settings, this.#settings)) return;
    void this.stop();
    this.#settings = settings;
    this.#reader = settings && openReader(settings, this.#options);
    this.#reader?.catch((error: unknown) => this.#options.on.failed(1, error));
  }

  /** Sends the last values, for at most a second. */
  async stop(): Promise<void> {
    const last = this.#reader?.then((reader) => reader.shutdown()).catch(() => undefined);
    this.#settings = this.#reader = undefined;
    if (last !== undefined) await hasSettledWithin(last, lastMs, this.#options.clock);
  }
}

/** Loads the packages of OpenTelemetry, and begins to send. */
async function openReader(
  settings: OtlpSettings,
  options: MetricsExportOptions,
): Promise<PeriodicExportingMetricReader> {
  const [sdk, { resourceFromAttributes }, { OTLPMetricExporter }] = await Promise.all([
    import("@opentelemetry/sdk-metrics"),
    import("@opentelemetry/resources"),
    import("@opentelemetry/exporter-metrics-otlp-proto"),
  ]);
  const { clock, identity, collect } = options;
  const resource = resourceFromAttributes(resourceAttributes(identity));
  const builder = new MetricBuilder({ ...options, ...identity, sdk });
  const { metricsIntervalMs, timeoutMs } = settings;
  const exporter = new OTLPMetricExporter(exporterOptions(settings, "metrics"));
  const reader = new sdk.PeriodicExportingMetricReader({
    exporter: counted(exporter, options, timeoutMs + graceMs),
    exportIntervalMillis: metricsIntervalMs,
    exportTimeoutMillis: metricsIntervalMs,
  });
  reader.setMetricProducer({
    async collect() {
      const scope = builder.metricsOf(await collect(), clock.now());
      return { resourceMetrics: { resource, scopeMetrics: [scope] }, errors: [] };
    },
  });
  return reader;
}

/**
 * Tells what becomes of each export, of which the reader says nothing. The exporter's own timeout
 * does not cover the making of a connection.
 */
function counted(
  exporter: PushMetricExporter,
  { clock, on }: MetricsExportOptions,
  limitMs: number,
): PushMetricExporter {
  const exportInTime = async (metrics: ResourceMetrics): Promise<ExportResult> => {
    const exported = Promise.withResolvers<ExportResult>();
    exporter.export(metrics, exported.resolve);
    if (await hasSettledWithin(exported.promise, limitMs, clock)) return exported.promise;
    return { code: 1, error: new Error("the collector did not answer in time") };
  };
  return {
    export(metrics, done) {
      void exportInTime(metrics).then((result) => {
        if (result.code === 0) on.sent(1);
        else on.failed(1, result.error ?? new Error("the collector did not take the metrics"));
        // oxlint-disable-next-line promise/no-callback-in-promise -- its interface has no promise
        done(result);
      });
    },
    forceFlush: () => exporter.forceFlush(),
    shutdown: () => exporter.shutdown(),
  };
}

type ExportResult = Parameters<Parameters<PushMetricExporter["export"]>[1]>[0];
