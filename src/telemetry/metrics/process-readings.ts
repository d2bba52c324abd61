import { readdirSync, readFileSync } from "node:fs";
import type { MetricFamily } from "./families.ts";

/** What the system reports about this process, under the names of Prometheus' client libraries. */
export function processFamilies(): readonly MetricFamily[] {
  const { user, system } = process.cpuUsage();
  const { open, most } = readFiles();
  const startedAt = (performance.timeOrigin || Date.now() - process.uptime() * 1_000) / 1_000;
  const readings = [
    ["process_cpu_seconds_total", "CPU time in user and system mode.", (user + system) / 1e6],
    ["process_resident_memory_bytes", "Resident memory.", process.memoryUsage.rss()],
    ["process_open_fds", "Open file descriptors.", open],
    ["process_max_fds", "Limit on open file descriptors.", most],
    ["process_start_time_seconds", "Start of the process since the epoch.", startedAt],
  ] as const;
  return readings.map(([name, help, value]) => ({
    name,
    help,
    type: name.endsWith("_total") ? "counter" : "gauge",
    series: value === undefined ? [] : [{ labels: {}, value }],
  }));
}

/** Undefined: the system does not report it. */
function readFiles(): { readonly open?: number; readonly most?: number } {
  try {
    const limits = readFileSync("/proc/self/limits", "utf8");
    const most = /^Max open files +(\d+)/m.exec(limits)?.[1];
    const open = readdirSync("/proc/self/fd").length;
    return most === undefined ? { open } : { open, most: Number(most) };
  } catch {
    return {};
  }
}
