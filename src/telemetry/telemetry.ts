import type { Clock } from "../domain/clock.ts";
import { TelemetryEvents } from "./events/events.ts";
import { LedgerTelemetry } from "./events/ledger-events.ts";
import { createLogger, describeDropped, type LoggerOptions } from "./log/logger.ts";
import type { LogSink } from "./log/log-output.ts";
import { type Gauges, Metrics } from "./metrics/metrics.ts";
import { OtlpEvents } from "./events/otlp-events.ts";
import { MetricsExport } from "./otlp/metrics-export.ts";
import { type MetricsOrigin, openMetricsSender } from "./otlp/metrics-sender.ts";
import { openTraceSender, TraceExport } from "./otlp/trace-export.ts";
import { OverloadEvents } from "./events/overload-events.ts";
import { RoutingEvents } from "./events/routing-events.ts";
import { StorageEvents } from "./events/storage-events.ts";

export interface TelemetrySetup {
  readonly level: LoggerOptions["level"];
  readonly format: LoggerOptions["format"];
  readonly logsUpstreamMessages: boolean;
  /** Whether requests of the API are logged at `info`. */
  readonly logsAccess: boolean;
  readonly clock: Clock;
  readonly log: LogSink;
  /** Number of the process, for traces and exported metrics. */
  readonly process: number;
  /** Limit on log bytes waiting for a slow reader. */
  readonly logBufferBytes: number;
  /** Version of the program, for traces. */
  readonly programVersion?: string | undefined;
  readonly gauges: Omit<Gauges, "droppedLogLines">;
}

/** Log and metrics, by the part of the process that reports to them. */
export interface Telemetry {
  readonly metrics: Metrics;
  readonly events: TelemetryEvents;
  readonly storage: StorageEvents;
  readonly ledger: LedgerTelemetry;
  readonly routing: RoutingEvents;
  readonly overload: OverloadEvents;
  readonly traces: TraceExport;
  /** Sends the metrics of all processes. */
  readonly exportOf: (source: ExportedPage) => MetricsExport;
}

export interface ExportedPage extends Pick<MetricsOrigin, "kindOf"> {
  readonly page: () => string | Promise<string>;
}

export function createTelemetry(setup: TelemetrySetup): Telemetry {
  const { level, format, logsUpstreamMessages, logsAccess, clock, log } = setup;
  log.configure({
    limitBytes: setup.logBufferBytes,
    describeDropped: describeDropped({ format, clock }),
  });
  const logger = createLogger({ level, format, clock, write: (line) => log.write(line) });
  const metrics = new Metrics({
    ...setup.gauges,
    droppedLogLines: () => log.droppedLines,
  });
  const identity = { process: setup.process, version: setup.programVersion };
  const traces = new TraceExport({
    clock,
    open: (settings) => openTraceSender(settings, identity),
    on: new OtlpEvents("traces", { logger, metrics, clock }),
  });
  const startedAt = clock.now();
  return {
    metrics,
    traces,
    exportOf: ({ page, kindOf }) =>
      new MetricsExport({
        clock,
        page,
        open: (settings) => openMetricsSender(settings, { ...identity, startedAt, kindOf }),
        on: new OtlpEvents("metrics", { logger, metrics, clock }),
      }),
    events: new TelemetryEvents({ logger, metrics, logsUpstreamMessages, logsAccess, traces }),
    storage: new StorageEvents({ logger, clock }),
    ledger: new LedgerTelemetry({ logger, metrics, clock }),
    overload: new OverloadEvents({ logger, metrics, clock }),
    routing: new RoutingEvents({ logger, metrics }),
  };
}
