import {
  closeSync,
  fdatasync,
  ftruncateSync,
  openSync,
  renameSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { open } from "node:fs/promises";
import { promisify } from "node:util";

/** What the spool does with its files. All but `sync` return when it is done. */
export interface SpoolFiles {
  /** Makes a file, for this user alone, that must not exist yet. */
  create(path: string): number;
  /** Writes at the end, perhaps less than it was given; returns how many bytes. */
  append(file: number, bytes: Uint8Array): number;
  truncate(file: number, bytes: number): void;
  /** Resolves when what was written before lies on the disk. */
  sync(file: number): Promise<void>;
  /** Resolves when the disk knows the files of a folder. */
  syncFolder(path: string): Promise<void>;
  close(file: number): void;
  remove(path: string): void;
  rename(path: string, newPath: string): void;
}

const flushToDisk = promisify(fdatasync);

export const systemFiles: SpoolFiles = {
  create: (path) => openSync(path, "ax", 0o600),
  append: (file, bytes) => writeSync(file, bytes),
  truncate: (file, bytes) => ftruncateSync(file, bytes),
  sync: (file) => flushToDisk(file),
  syncFolder,
  close: (file) => closeSync(file),
  remove: (path) => unlinkSync(path),
  rename: (path, newPath) => renameSync(path, newPath),
};

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path);
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/** Removes a file that is done with; one with damage is kept aside for the operator. */
export function putAway(files: SpoolFiles, path: string, skippedBytes: number): void {
  if (skippedBytes === 0) files.remove(path);
  else files.rename(path, path.replace(/spool$/, "damaged"));
}
