import type { Stats } from "node:fs";

/** What a path is if not a regular file, for which it is undefined. Opening a FIFO may block. */
export function oddKind(stats: Stats): string | undefined {
  if (stats.isFile()) return undefined;
  if (stats.isFIFO()) return "a FIFO";
  if (stats.isDirectory()) return "a folder";
  if (stats.isSocket()) return "a socket";
  return "a device";
}
