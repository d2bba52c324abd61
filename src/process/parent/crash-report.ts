import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ChildFailure } from "./child.ts";

/** An unexpected end of a process. */
export interface Crash {
  /** Milliseconds since the Unix epoch. */
  readonly at: number;
  /** Of the process among those of the gateway. */
  readonly number: number;
  readonly pid: number;
  readonly uptimeMs: number;
  /** Undefined when a signal ended it. */
  readonly exitCode: number | undefined;
  readonly signal: string | undefined;
  readonly peakResidentBytes: number | undefined;
  /** Earlier restarts in its place. */
  readonly restarts: number;
  /** Whether it had begun to serve. */
  readonly hasServed: boolean;
  /** What the process itself reported; undefined when it was killed. */
  readonly failure: ChildFailure | undefined;
}

/** Older reports are deleted. */
export const keptReports = 20;

/**
 * Writes a report to the `crashes` folder of the data directory; returns its path. Throws file
 * errors.
 */
export function writeCrashReport(crash: Crash, dataDir: string, version: string): string {
  const folder = join(dataDir, "crashes");
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const time = new Date(crash.at).toISOString();
  // Some file systems do not allow colons.
  const path = join(folder, `${time.replaceAll(":", "-")}-${crash.pid}.json`);
  const { failure } = crash;
  const report = {
    version,
    time,
    process: crash.number,
    pid: crash.pid,
    uptime_ms: Math.round(crash.uptimeMs),
    exit_code: crash.exitCode ?? null,
    signal: crash.signal ?? null,
    restarts: crash.restarts,
    memory: {
      peak_resident_bytes: crash.peakResidentBytes ?? null,
      resident_bytes: failure?.residentBytes ?? null,
    },
    exception: failure === undefined ? null : { error: failure.error, at: failure.positions },
  };
  writeFileSync(path, `${JSON.stringify(report, null, 2)}\n`, { mode: 0o600 });
  deleteOldest(folder);
  return path;
}

/** Names start with the time. */
function deleteOldest(folder: string): void {
  const names = readdirSync(folder).filter((name) => name.endsWith(".json"));
  for (const name of names.toSorted().slice(0, -keptReports)) {
    rmSync(join(folder, name), { force: true });
  }
}
