import { readdirSync, readFileSync } from "node:fs";
import type { ProcessReading } from "../telemetry/metrics/process-metrics.ts";

/** What the system reports about this process. */
export function readOwnProcess(): ProcessReading {
  const { user, system } = process.cpuUsage();
  return {
    cpuSeconds: (user + system) / 1e6,
    residentBytes: process.memoryUsage.rss(),
    ...readFiles(),
    startedAt: (performance.timeOrigin || Date.now() - process.uptime() * 1_000) / 1_000,
  };
}

function readFiles(): Pick<ProcessReading, "openFiles" | "mostFiles"> {
  try {
    const limits = readFileSync("/proc/self/limits", "utf8");
    const most = /^Max open files +(\d+)/m.exec(limits)?.[1];
    return {
      openFiles: readdirSync("/proc/self/fd").length,
      mostFiles: most === undefined ? undefined : Number(most),
    };
  } catch {
    return { openFiles: undefined, mostFiles: undefined };
  }
}
