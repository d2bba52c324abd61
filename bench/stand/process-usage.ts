import { existsSync, readdirSync, readFileSync } from "node:fs";

/**
 * CPU time that a process has used so far, user and system, of all its threads.
 *
 * The kernel's sum is in hundredths of a second. For a process with one thread it also has
 * nanoseconds; with several threads those of ended ones would be missing.
 */
export function cpuMicroseconds(pid: number): number {
  const tasks = readdirSync(`/proc/${pid}/task`);
  return (tasks.length === 1 ? scheduledMicroseconds(pid) : undefined) ?? tickedMicroseconds(pid);
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

/** Undefined if the kernel has no such count. */
function scheduledMicroseconds(pid: number): number | undefined {
  const path = `/proc/${pid}/schedstat`;
  const nanoseconds = existsSync(path) ? Number(readFileSync(path, "utf8").split(" ")[0]) : 0;
  return nanoseconds > 0 ? nanoseconds / 1_000 : undefined;
}

function tickedMicroseconds(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  // The name of the program may contain spaces, so fields are counted after it.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return ((Number(fields[11]) + Number(fields[12])) * 1_000_000) / ticksPerSecond;
}
