import {
  appendFileSync,
  closeSync,
  constants,
  fdatasyncSync,
  fstatSync,
  ftruncateSync,
  openSync,
} from "node:fs";
import { join } from "node:path";
import { oddKind } from "../../domain/system-files.ts";
import type { PoisonRow } from "./store-rows.ts";

/** Opening a FIFO without a reader fails instead of blocking. */
const appendNonBlocking =
  constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NONBLOCK;

/**
 * Appends a row to `dead-letter.ndjson` for the operator. Once this returns the row is on disk;
 * throws otherwise.
 */
export function writeDeadLetter(folder: string, { record, error }: PoisonRow, at: number): void {
  const reason = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  const line = JSON.stringify({ at: new Date(at).toISOString(), reason, record });
  const path = join(folder, "dead-letter.ndjson");
  const file = openSync(path, appendNonBlocking, 0o600);
  try {
    const stats = fstatSync(file);
    const odd = oddKind(stats);
    if (odd !== undefined) {
      throw new Error(`${path} is ${odd}; remove it, and a new file is created`);
    }
    try {
      appendFileSync(file, `${line}\n`);
      fdatasyncSync(file);
    } catch (failure) {
      ftruncateSync(file, stats.size);
      throw failure;
    }
  } finally {
    closeSync(file);
  }
}
