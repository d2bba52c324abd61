import packageJson from "../../package.json" with { type: "json" };
import type { LoopMeter } from "../admission/overload/loop-meter.ts";
import type { ProcessFacts } from "../domain/process-status.ts";

/** What a process knows regardless of its role. */
export type OwnFacts = Omit<
  ProcessFacts,
  "startedAt" | "waitingRows" | "droppedLogLines" | "configuredAt"
>;

/** `loop` measures the process's event loop, once it is started. */
export function ownFacts(loop?: LoopMeter): OwnFacts {
  const { longestMs = 0, p99Ms = 0 } = loop?.ofLastMinute ?? {};
  return {
    pid: process.pid,
    degraded: undefined,
    version: packageJson.version,
    residentBytes: process.memoryUsage.rss(),
    loopDelayLongestMs: longestMs,
    loopDelayP99Ms: p99Ms,
    openCalls: undefined,
    calls: undefined,
    spoolBytes: undefined,
    keysGeneration: 0,
  };
}
