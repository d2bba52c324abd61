import type { Stats } from "node:fs";

/** Names what is not a regular file; undefined for a file. Opening a FIFO may block forever. */
export function oddKind(stats: Stats): string | undefined {
  if (stats.isFile()) return undefined;
  if (stats.isFIFO()) return "a FIFO";
  if (stats.isDirectory()) return "a folder";
  if (stats.isSocket()) return "a socket";
  return "a device";
}

/** The code of an error of the system or the runtime, such as `ENOENT`; undefined without one. */
export function errorCode(error: unknown): string | undefined {
  return error instanceof Error && "code" in error ? String(error.code) : undefined;
}

/** Whether a process of this machine has this id, even one of another user. */
export function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return errorCode(error) === "EPERM";
  }
}
