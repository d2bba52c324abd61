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
import { metricsOf, type MetricSource } from "./metric-builder.ts";
import {
  exporterOptions,
  exportInTime,
  type OtlpIdentity,
  resourceAttributes,
} from "./otlp-identity.ts";

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
  const source = { ...options, ...identity, sdk };
  const { metricsIntervalMs, timeoutMs } = settings;
  const exporter = new OTLPMetricExporter(exporterOptions(settings, "metrics"));
  const reader = new sdk.PeriodicExportingMetricReader({
    exporter: counted(exporter, options, timeoutMs),
    exportIntervalMillis: metricsIntervalMs,
    exportTimeoutMillis: metricsIntervalMs,
  });
  reader.setMetricProducer({
    async collect() {
      const scope = metricsOf(await collect(), clock.now(), source);
      return { resourceMetrics: { resource, scopeMetrics: [scope] }, errors: [] };
    },
  });
  return reader;
}

/** Tells what becomes of each export, of which the reader says nothing. */
function counted(
  exporter: PushMetricExporter,
  { clock, on }: MetricsExportOptions,
  timeoutMs: number,
): PushMetricExporter {
  const send = async (metrics: ResourceMetrics): Promise<{ readonly code: number }> => {
    try {
      await exportInTime(exporter, metrics, { timeoutMs, clock });
      on.sent(1);
      return { code: 0 };
    } catch (error) {
      on.failed(1, error);
      return { code: 1 };
    }
  };
  return {
    // oxlint-disable-next-line promise/no-callback-in-promise -- its interface has no promise
    export: (metrics, done) => void send(metrics).then(done),
    forceFlush: () => exporter.forceFlush(),
    shutdown: () => exporter.shutdown(),
  };
}
