import type { Clock } from "../domain/clock.ts";
import { TelemetryEvents } from "./events/events.ts";
import { ledgerEvents } from "./events/ledger-events.ts";
import { createLogger, describeDropped, type LoggerOptions } from "./log/logger.ts";
import type { LogSink } from "./log/log-output.ts";
import { type Gauges, Metrics } from "./metrics/metrics.ts";
import { otlpEvents } from "./events/otlp-events.ts";
import { MetricsExport, type MetricsExportOptions } from "./otlp/metrics-export.ts";
import { TraceExport } from "./otlp/trace-export.ts";
import { overloadEvents, routingEvents } from "./events/routing-events.ts";
import { storageEvents } from "./events/storage-events.ts";

export interface TelemetrySettings {
  readonly logLevel: LoggerOptions["level"];
  readonly logFormat: LoggerOptions["format"];
  /** Limit on log bytes waiting for a slow reader. */
  readonly logBufferBytes: number;
  /** Whether requests of the API are logged at `info`. */
  readonly logsAccess: boolean;
  readonly logsUpstreamMessages: boolean;
}

export interface TelemetrySetup {
  readonly settings: TelemetrySettings;
  readonly clock: Clock;
  readonly log: LogSink;
  /** Number of the process, for traces and exported metrics. */
  readonly process: number;
  /** Of the program. */
  readonly version: string;
  readonly gauges: Gauges;
}

/** Log and metrics, by the part of the process that reports to them. */
export type Telemetry = ReturnType<typeof createTelemetry>;

type ExportedMetrics = Pick<MetricsExportOptions, "collect" | "kindOf">;

export function createTelemetry(setup: TelemetrySetup) {
  const { settings, clock, log } = setup;
  const { logLevel: level, logFormat: format } = settings;
  log.configure({
    limitBytes: settings.logBufferBytes,
    describeDropped: describeDropped({ format, clock }),
  });
  const logger = createLogger({ level, format, clock, write: (line) => log.write(line) });
  const metrics = new Metrics({
    ...setup.gauges,
    sluice_log_lines_dropped_total: () => log.droppedLines,
  });
  const options = { logger, metrics, clock };
  const identity = { process: setup.process, version: setup.version };
  const traces = new TraceExport({ clock, identity, on: otlpEvents("traces", options) });
  const startedAt = clock.now();
  return {
    metrics,
    traces,
    /** Sends the metrics of the process. */
    exportOf: (source: ExportedMetrics) =>
      new MetricsExport({
        ...source,
        clock,
        identity,
        startedAt,
        on: otlpEvents("metrics", options),
      }),
    events: new TelemetryEvents({ ...options, ...settings, traces }),
    storage: storageEvents(options),
    ledger: ledgerEvents(options),
    overload: overloadEvents(options),
    routing: routingEvents(options),
  };
}
