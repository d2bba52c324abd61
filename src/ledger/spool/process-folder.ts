import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { basename, join } from "node:path";
import { errorCode } from "../../domain/system-files.ts";
import { FolderLock } from "./folder-lock.ts";

const folderName = /^\d+-\d+-\d+(?:-\d+)?$/;

/** The folder of all spools. */
export function spoolRoot(dataDir: string): string {
  return join(dataDir, "spool");
}

/** Name of a process's folder: the number of the process, its start time and its process id. */
export function processFolderName(index: number, startedAt: number, pid: number): string {
  return `${index}-${startedAt}-${pid}`;
}

/** Paths of the folders of all processes, in the order of their names. */
export function listProcessFolders(root: string): readonly string[] {
  const entries = readdirSync(root, { withFileTypes: true });
  const folders = entries.filter((entry) => entry.isDirectory() && folderName.test(entry.name));
  return folders.map(({ name }) => join(root, name)).toSorted();
}

const maxAttempts = 100;

/** Creates and locks a folder. If the name is taken, a number is appended. Throws system errors. */
export function createProcessFolder(root: string, name: string): FolderLock {
  for (let attempt = 1; attempt <= maxAttempts; attempt += 1) {
    const lock = lockNew(join(root, attempt === 1 ? name : `${name}-${attempt}`));
    if (lock !== undefined) return lock;
  }
  throw new Error(`${join(root, name)} and its alternatives are taken`);
}

/** Undefined when the folder exists, or when ingest removed it before it was locked. */
function lockNew(path: string): FolderLock | undefined {
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    if (errorCode(error) === "EEXIST") return undefined;
    throw error;
  }
  let lock: FolderLock | undefined;
  try {
    lock = new FolderLock(path);
    if (lock.take() && existsSync(lock.path)) return lock;
  } catch (error) {
    if (existsSync(path)) {
      lock?.release();
      throw error;
    }
  }
  lock?.release();
  return undefined;
}

/** Removes the folder of a process that has ended if no files are left in it. */
export function clearFolder(path: string): void {
  const lock = new FolderLock(path);
  if (lock.take()) releaseFolder(lock);
  else lock.release();
}

/** Unlocks a folder, and removes it if no files are left in it. */
export function releaseFolder(lock: FolderLock): void {
  const { folder } = lock;
  try {
    const isEmpty = readdirSync(folder).every((name) => name === basename(lock.path));
    // Another process that is about to lock its new folder must not find it half removed.
    const aside = `${folder}.removed`;
    if (isEmpty) renameSync(folder, aside);
    if (isEmpty) rmSync(aside, { recursive: true });
  } catch {
    // The next start tries again.
  }
  lock.release();
}
