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
import { dirname } from "node:path";
import { promisify } from "node:util";

/** File operations of the spool, synchronous except the syncs. */
export interface SpoolFiles {
  /** Creates a file that must not exist, accessible to this user only. */
  create(path: string): number;
  /** Appends all or some of the bytes; returns how many. */
  append(file: number, bytes: Uint8Array): number;
  truncate(file: number, bytes: number): void;
  /** Resolves when earlier writes are on disk. */
  sync(file: number): Promise<void>;
  /** Resolves when the entries of a folder are on disk. */
  syncFolder(path: string): Promise<void>;
  close(file: number): void;
  /** Resolves when the content of a file and its folder entry are on disk. */
  syncPath(path: string): Promise<void>;
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
  syncPath,
  remove: (path) => unlinkSync(path),
  rename: (path, newPath) => renameSync(path, newPath),
};

async function syncFolder(path: string): Promise<void> {
  await using folder = await open(path);
  await folder.sync();
}

async function syncPath(path: string): Promise<void> {
  {
    await using file = await open(path);
    await file.datasync();
  }
  await syncFolder(dirname(path));
}
