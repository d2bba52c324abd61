import { closeSync, fdatasyncSync, fstatSync, ftruncateSync, openSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { PoisonRow } from "./store-rows.ts";

/**
 * Puts a row aside for the operator, in `dead-letter.ndjson`. When this returns it lies on the
 * disk. Throws when it does not.
 */
export function writeDeadLetter(folder: string, { record, error }: PoisonRow, at: number): void {
  const reason = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  const line = JSON.stringify({ at: new Date(at).toISOString(), reason, record });
  const file = openSync(join(folder, "dead-letter.ndjson"), "a", 0o600);
  try {
    appendWhole(file, Buffer.from(`${line}\n`));
    fdatasyncSync(file);
  } finally {
    closeSync(file);
  }
}

function appendWhole(file: number, bytes: Uint8Array): void {
  const { size } = fstatSync(file);
  try {
    let written = 0;
    while (written < bytes.length) written += writeSync(file, bytes, written);
  } catch (error) {
    ftruncateSync(file, size);
    throw error;
  }
}
