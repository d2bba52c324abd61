import { formatLabels, renderMetric } from "./text-format.ts";

/** What the system reports about a process. Undefined: it does not report this. */
export interface ProcessReading {
  /** CPU time in user and system mode since its start. */
  readonly cpuSeconds: number;
  readonly residentBytes: number;
  readonly openFiles: number | undefined;
  readonly mostFiles: number | undefined;
  /** Seconds since the epoch. */
  readonly startedAt: number;
}

/** Metrics of processes under the names that Prometheus' own client libraries use. */
const table = [
  ["process_cpu_seconds_total", "CPU time in user and system mode.", "cpuSeconds"],
  ["process_resident_memory_bytes", "Resident memory.", "residentBytes"],
  ["process_open_fds", "Open file descriptors.", "openFiles"],
  ["process_max_fds", "Limit on open file descriptors.", "mostFiles"],
  ["process_start_time_seconds", "Start of the process since the epoch.", "startedAt"],
] as const;

export function renderProcesses(processes: readonly ProcessReading[]): readonly string[] {
  return table.map(([name, help, field]) => {
    const type = name.endsWith("_total") ? "counter" : "gauge";
    const values = processes.flatMap((reading) => {
      const value = reading[field];
      return value === undefined ? [] : [["", value] as const];
    });
    return renderMetric(type, { name, help }, values);
  });
}

export interface Build {
  readonly version: string;
  readonly commit: string | undefined;
}

export function renderBuild({ version, commit = "unknown" }: Build): string {
  const labels = formatLabels(
    ["version", "commit", "runtime"],
    [version, commit, `bun-${Bun.version}`],
  );
  const help = "1 for the version of the program that runs.";
  return renderMetric("gauge", { name: "sluice_build_info", help }, [[labels, 1]]);
}
