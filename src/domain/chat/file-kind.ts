import type { Stats } from "node:fs";

/** What stands where a file belongs; undefined for a file. Opening a FIFO may wait for ever. */
export function oddKind(stats: Stats): string | undefined {
  if (stats.isFile()) return undefined;
  if (stats.isFIFO()) return "a FIFO";
  if (stats.isDirectory()) return "a folder";
  if (stats.isSocket()) return "a socket";
  return "a device";
}
