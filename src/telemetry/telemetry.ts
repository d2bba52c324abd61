import type { Clock } from "../domain/clock.ts";
import { TelemetryEvents } from "./events.ts";
import { LedgerTelemetry } from "./ledger-events.ts";
import { createLogger, type LoggerOptions } from "./logger.ts";
import { Metrics, type Gauges } from "./metrics.ts";
import { OverloadEvents } from "./overload-events.ts";
import { RoutingEvents } from "./routing-events.ts";
import { StorageEvents } from "./storage-events.ts";

export interface TelemetrySetup {
  readonly level: LoggerOptions["level"];
  readonly format: LoggerOptions["format"];
  readonly logsUpstreamMessages: boolean;
  readonly clock: Clock;
  readonly write: LoggerOptions["write"];
  readonly gauges: Gauges;
}

/** What the parts of the process tell, and where it goes. */
export interface Telemetry {
  readonly metrics: Metrics;
  readonly events: TelemetryEvents;
  readonly storage: StorageEvents;
  readonly ledger: LedgerTelemetry;
  readonly routing: RoutingEvents;
  readonly overload: OverloadEvents;
}

export function createTelemetry(setup: TelemetrySetup): Telemetry {
  const { logsUpstreamMessages, clock, gauges, ...rest } = setup;
  const logger = createLogger({ ...rest, clock });
  const metrics = new Metrics(gauges);
  return {
    metrics,
    events: new TelemetryEvents({ logger, metrics, logsUpstreamMessages }),
    storage: new StorageEvents({ logger, clock }),
    ledger: new LedgerTelemetry({ logger, metrics, clock }),
    overload: new OverloadEvents({ logger, metrics: metrics.overload, clock }),
    routing: new RoutingEvents({ logger, metrics: metrics.routing, capacity: metrics.capacity }),
  };
}
