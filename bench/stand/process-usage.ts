import { existsSync, readdirSync, readFileSync } from "node:fs";

/**
 * CPU time that processes have used so far, user and system, of all their threads and of those of
 * their children that have ended.
 */
export function cpuMicroseconds(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => sum + cpuOf(pid), 0);
}

/**
 * Memory in bytes: the sum of the processes' PSS, in which a page that several share counts once. The
 * suite's own programs share the runtime's file with them, so of files it is what the process with most
 * of them has resident.
 */
export function memoryBytes(pids: readonly number[]): number {
  const parts = pids.map(memoryOf);
  const own = parts.reduce((sum, { ownBytes }) => sum + ownBytes, 0);
  return own + Math.max(...parts.map(({ fileBytes }) => fileBytes));
}

/** A process, and all that descend from it. */
export function processesOf(pid: number): readonly number[] {
  return [pid, ...childrenOf(pid).flatMap(processesOf)];
}

/** Empty when it has ended. */
export function nameOf(pid: number): string {
  return textOf(`/proc/${pid}/comm`).trim();
}

const ticksPerSecond = 100;

function childrenOf(pid: number): readonly number[] {
  const tasks = existsSync(`/proc/${pid}/task`) ? readdirSync(`/proc/${pid}/task`) : [];
  return tasks
    .flatMap((task) => textOf(`/proc/${pid}/task/${task}/children`).trim().split(" "))
    .filter((child) => child !== "")
    .map(Number);
}

/**
 * The kernel's sum is in hundredths of a second. For a process with one thread it also has
 * nanoseconds; with several threads those of ended ones would be missing.
 */
function cpuOf(pid: number): number {
  const tasks = existsSync(`/proc/${pid}/task`) ? readdirSync(`/proc/${pid}/task`) : [];
  const { own, ended } = tickedMicroseconds(pid);
  return ((tasks.length === 1 ? scheduledMicroseconds(pid) : undefined) ?? own) + ended;
}

/** Undefined if the kernel has no such count. */
function scheduledMicroseconds(pid: number): number | undefined {
  const nanoseconds = Number(textOf(`/proc/${pid}/schedstat`).split(" ")[0]);
  return nanoseconds > 0 ? nanoseconds / 1_000 : undefined;
}

function tickedMicroseconds(pid: number): { readonly own: number; readonly ended: number } {
  const stat = textOf(`/proc/${pid}/stat`);
  // The name of the program may contain spaces, so fields are counted after it.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const [user = 0, system = 0, endedUser = 0, endedSystem = 0] = fields.slice(11, 15).map(Number);
  const tickMicroseconds = 1_000_000 / ticksPerSecond;
  return {
    own: (user + system) * tickMicroseconds,
    ended: (endedUser + endedSystem) * tickMicroseconds,
  };
}

function memoryOf(pid: number): { readonly ownBytes: number; readonly fileBytes: number } {
  const shares = textOf(`/proc/${pid}/smaps_rollup`);
  return {
    ownBytes: (kilobytesIn(shares, "Pss") - kilobytesIn(shares, "Pss_File")) * 1_024,
    fileBytes: kilobytesIn(textOf(`/proc/${pid}/status`), "RssFile") * 1_024,
  };
}

/** 0 where the kernel's report has no such line. */
function kilobytesIn(report: string, name: string): number {
  return Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(report)?.[1] ?? 0);
}

/** Empty for a process that has ended. */
function textOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
