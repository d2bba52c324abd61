import {
  appendFileSync,
  closeSync,
  fdatasyncSync,
  fstatSync,
  ftruncateSync,
  openSync,
} from "node:fs";
import { join } from "node:path";
import type { PoisonRow } from "./store-rows.ts";

/**
 * Appends a row to `dead-letter.ndjson` for the operator. Once this returns the row is on disk;
 * throws otherwise.
 */
export function writeDeadLetter(folder: string, { record, error }: PoisonRow, at: number): void {
  const reason = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  const line = JSON.stringify({ at: new Date(at).toISOString(), reason, record });
  const file = openSync(join(folder, "dead-letter.ndjson"), "a", 0o600);
  const { size } = fstatSync(file);
  try {
    appendFileSync(file, `${line}\n`);
    fdatasyncSync(file);
  } catch (failure) {
    ftruncateSync(file, size);
    throw failure;
  } finally {
    closeSync(file);
  }
}
