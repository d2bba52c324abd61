import { createTelemetry, type TelemetrySettings } from "../../src/telemetry/telemetry.ts";
import { noLog } from "../../src/telemetry/log/log-output.ts";
import { ManualClock } from "./manual-clock.ts";
import { pageOf } from "./metrics-page.ts";

/** The telemetry of a process at rest, and what it has logged. */
export function recordedTelemetry(settings: Partial<TelemetrySettings> = {}) {
  const clock = new ManualClock();
  const lines: string[] = [];
  const telemetry = createTelemetry({
    settings: {
      logLevel: "debug",
      logFormat: "json",
      logBufferBytes: 1024,
      logsAccess: true,
      logsUpstreamMessages: false,
      ...settings,
    },
    clock,
    log: { ...noLog, write: (line) => void lines.push(line) },
    process: 1,
    version: "1.0.0",
    gauges: { sluice_open_requests: () => 3, sluice_ledger_queue_rows: () => 4 },
  });
  return {
    ...telemetry,
    clock,
    lines,
    logged: (): unknown[] => lines.map((line): unknown => JSON.parse(line)),
    page: () => pageOf(telemetry.metrics),
  };
}
