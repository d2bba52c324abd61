import { accessSync, chmodSync, constants, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { errorCode } from "../../domain/system-files.ts";

export interface SegmentFile {
  readonly number: number;
  readonly path: string;
}

/** Names sort like their numbers, up to a hundred million. */
export function segmentPath(folder: string, number: number): string {
  return join(folder, `${String(number).padStart(8, "0")}.spool`);
}

const segmentName = /^(\d{8,})\.spool$/;

/** The spool files in a folder, readable or not, oldest first. Throws system errors. */
export function listSegments(folder: string): readonly SegmentFile[] {
  const files = readdirSync(folder).flatMap((name) => {
    const number = Number(segmentName.exec(name)?.[1]);
    return Number.isSafeInteger(number) ? [{ number, path: join(folder, name) }] : [];
  });
  return files.toSorted((one, other) => one.number - other.number);
}

const snapshotName = /^(\d{8,})\.limits$/;

/** The limits as they were before the first record of the file of this number. */
export function snapshotPath(folder: string, number: number): string {
  return join(folder, `${String(number).padStart(8, "0")}.limits`);
}

/** The number in the name of the last snapshot of limits; undefined: there is none. */
export function readSnapshotNumber(folder: string): number | undefined {
  const numbers = readdirSync(folder).map((name) => Number(snapshotName.exec(name)?.[1]));
  return numbers
    .filter((number) => Number.isSafeInteger(number))
    .toSorted((one, other) => one - other)
    .at(-1);
}

/** Why the file may not be read; undefined for one that may. */
export function whyUnreadable(path: string): string | undefined {
  try {
    accessSync(path, constants.R_OK);
    return undefined;
  } catch (error) {
    return errorCode(error) ?? "unreadable";
  }
}

const readOnly = 0o400;
const writeBits = 0o222;

/**
 * Marks a file whose open calls have all ended and are in the database. On a full disk the ends of
 * calls cannot be written, so the file would stay; the mark needs no space. Throws system errors.
 */
export function markSettled(path: string): void {
  chmodSync(path, readOnly);
}

export function isSettled(path: string): boolean {
  const stats = statSync(path, { throwIfNoEntry: false });
  return stats !== undefined && (stats.mode & writeBits) === 0;
}
