import { readdirSync, readFileSync } from "node:fs";
import type { ProcessReading } from "../telemetry/metrics/process-metrics.ts";

/** What the system reports about this process. */
export function readOwnProcess(worker: string): ProcessReading {
  const { user, system } = process.cpuUsage();
  return {
    worker,
    cpuSeconds: (user + system) / 1e6,
    residentBytes: process.memoryUsage.rss(),
    ...readFiles("self"),
    startedAt: (performance.timeOrigin || Date.now() - process.uptime() * 1_000) / 1_000,
  };
}

/** The same on every Linux machine. */
const ticksPerSecond = 100;
const pageBytes = 4_096;

/**
 * What Linux reports about another process; undefined on other systems, or if it does not exist.
 */
export function readProcess(pid: number, worker: string): ProcessReading | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The name, in parentheses, may contain spaces. Fields are counted from 1; the state is the
    // third.
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    const field = (number: number): number => Number(fields[number - 3]);
    const boot = /^btime (\d+)$/m.exec(readFileSync("/proc/stat", "utf8"))?.[1];
    return {
      worker,
      cpuSeconds: (field(14) + field(15)) / ticksPerSecond,
      residentBytes: field(24) * pageBytes,
      ...readFiles(String(pid)),
      startedAt: Number(boot) + field(22) / ticksPerSecond,
    };
  } catch {
    return undefined;
  }
}

function readFiles(of: string): Pick<ProcessReading, "openFiles" | "mostFiles"> {
  try {
    const limits = readFileSync(`/proc/${of}/limits`, "utf8");
    const most = /^Max open files +(\d+)/m.exec(limits)?.[1];
    return {
      openFiles: readdirSync(`/proc/${of}/fd`).length,
      mostFiles: most === undefined ? undefined : Number(most),
    };
  } catch {
    return { openFiles: undefined, mostFiles: undefined };
  }
}
