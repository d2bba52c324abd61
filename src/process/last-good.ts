import { readFileSync } from "node:fs";
import { rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";

/** The last configuration that was accepted, in the data directory. */
function pathIn(dataDir: string): string {
  return join(dataDir, "config.last-good");
}

/** Keeps the text of a configuration that works, for a start after a crash. */
export async function keepLastGood(dataDir: string, text: string): Promise<void> {
  if (readLastGood(dataDir) === text) return;
  const draft = `${pathIn(dataDir)}.new`;
  await rm(draft, { force: true });
  await writeFile(draft, text, { mode: 0o600 });
  await rename(draft, pathIn(dataDir));
}

/** Undefined if there is none. */
export function readLastGood(dataDir: string): string | undefined {
  try {
    return readFileSync(pathIn(dataDir), "utf8");
  } catch {
    return undefined;
  }
}
