import { readdirSync, readFileSync } from "node:fs";

/**
 * CPU time that a process has used so far, all its threads together, user and system.
 *
 * The scheduler's own count has nanoseconds; `/proc/PID/stat` counts in hundredths of a second and
 * serves where the kernel keeps no such count.
 */
export function cpuMicroseconds(pid: number): number {
  return scheduledMicroseconds(pid) ?? tickedMicroseconds(pid);
}

/** Resident memory in bytes. */
export function residentBytes(pid: number): number {
  const pages = Number(readFileSync(`/proc/${pid}/statm`, "utf8").split(" ")[1]);
  return pages * pageBytes;
}

/** The first child of a process; for nginx, its only worker. */
export function firstChildOf(pid: number): number {
  const child = Number(readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ")[0]);
  if (!(child > 0)) throw new Error(`process ${pid} has no child`);
  return child;
}

const pageBytes = 4096;
const ticksPerSecond = 100;

function scheduledMicroseconds(pid: number): number | undefined {
  try {
    let nanoseconds = 0;
    for (const task of readdirSync(`/proc/${pid}/task`)) {
      const fields = readFileSync(`/proc/${pid}/task/${task}/schedstat`, "utf8").split(" ");
      nanoseconds += Number(fields[0]);
    }
    return nanoseconds > 0 ? nanoseconds / 1_000 : undefined;
  } catch {
    return undefined;
  }
}

function tickedMicroseconds(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  // The name of the program may hold spaces, so fields are counted from behind it.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return ((Number(fields[11]) + Number(fields[12])) * 1_000_000) / ticksPerSecond;
}
