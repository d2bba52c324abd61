import type { Gauges } from "../../src/telemetry/metrics/metrics.ts";

/** Gauges of a process at rest. */
export const zeroGauges: Gauges = {
  openRequests: () => 0,
  queuedUsageRows: () => 0,
  spoolBytes: () => 0,
  keysAgeSeconds: () => 0,
  droppedLogLines: () => 0,
};
