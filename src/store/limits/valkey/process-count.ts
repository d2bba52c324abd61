import { readFileSync } from "node:fs";
import { rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../../../domain/clock.ts";

const fileName = "process-count";
const readMs = 1_000;
/** More than there can be: such a file is damaged. */
const most = 100_000;

export interface ProcessCountOptions {
  readonly dataDir: string;
  /** How many processes this gateway has by its configuration. */
  readonly own: number;
  readonly clock: Pick<Clock, "monotonic">;
}

/**
 * Returns how many processes share the limits: as many as the database last told, which is on disk
 * for a start without it, and no fewer than those of this gateway.
 */
export function createProcessCount({ dataDir, own, clock }: ProcessCountOptions): () => number {
  let known = own;
  let readAtMs = -Infinity;
  return () => {
    const now = clock.monotonic();
    if (now - readAtMs < readMs) return known;
    readAtMs = now;
    known = Math.max(own, readCount(join(dataDir, fileName)));
    return known;
  };
}

/** Keeps what the rows of the database tell. Fails silently: the count of before is a good guess. */
export async function keepProcessCount(dataDir: string, count: number): Promise<void> {
  const path = join(dataDir, fileName);
  if (readCount(path) === count) return;
  // Processes of one gateway keep it in the same place.
  const draft = `${path}.${process.pid}`;
  try {
    await writeFile(draft, `${count}\n`, { mode: 0o600 });
    await rename(draft, path);
  } catch {
    // The disk is looked after by others.
  }
}

/** 0: nothing is known. */
function readCount(path: string): number {
  try {
    const count = Number(readFileSync(path, "utf8"));
    return Number.isSafeInteger(count) && count > 0 && count <= most ? count : 0;
  } catch {
    return 0;
  }
}
