import { constants, Database } from "bun:sqlite";
import { mkdirSync, renameSync, rmSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { pathToFileURL } from "node:url";

/**
 * Checks that the file at a path is still the one that was opened, and sound. Opens it only through
 * SQLite, because closing a file releases all locks that the process has on it.
 */
export class DatabaseFile {
  readonly #path: string;
  #opened: FileState | undefined;
  #log: FileState | undefined;

  constructor(path: string) {
    this.#path = path;
  }

  /** Before opening: makes the folder and moves the write-ahead log of a replaced file aside. */
  prepare(): void {
    if (this.#opened === undefined) {
      mkdirSync(dirname(this.#path), { recursive: true });
      return;
    }
    const now = stateOf(this.#path);
    if (now === undefined || isSameFile(now, this.#opened) || this.#log === undefined) return;
    const log = `${this.#path}-wal`;
    const logNow = stateOf(log);
    if (logNow === undefined || !isSameFile(logNow, this.#log)) return;
    // SQLite would write pages of the previous file over those of the new one.
    renameSync(log, `${log}-of-replaced-file`);
    rmSync(`${this.#path}-shm`, { force: true });
  }

  /** Called after opening and when the file was found broken. */
  remember(): void {
    this.#opened = stateOf(this.#path);
    this.#log = stateOf(`${this.#path}-wal`);
  }

  /** The problem of the file since it was opened; undefined: none. */
  findDamage(): string | undefined {
    const opened = this.#opened;
    if (opened === undefined) return undefined;
    const now = stateOf(this.#path);
    if (now === undefined) return "is gone";
    if (!isSameFile(now, opened)) return "was replaced by another file";
    if (isUnchanged(now, opened)) return undefined;
    if (now.size === 0n || !this.#hasHeader()) return "was overwritten";
    this.#opened = now;
    return undefined;
  }

  /** Checks the header, because SQLite reads from the log and its cache where it can. */
  #hasHeader(): boolean {
    const url = `${pathToFileURL(this.#path).href}?immutable=1`;
    try {
      // Immutable: without the log and without locks.
      using probe = new Database(url, constants.SQLITE_OPEN_READONLY | constants.SQLITE_OPEN_URI);
      probe.query("PRAGMA schema_version").get();
      return true;
    } catch {
      return false;
    }
  }
}

export interface FileState {
  readonly device: bigint;
  readonly inode: bigint;
  readonly bornAt: bigint;
  readonly size: bigint;
  readonly changedAt: bigint;
}

export function stateOf(path: string): FileState | undefined {
  const stats = statSync(path, { bigint: true, throwIfNoEntry: false });
  if (stats === undefined) return undefined;
  const { dev: device, ino: inode, size, birthtimeNs: bornAt, mtimeNs: changedAt } = stats;
  return { device, inode, bornAt, size, changedAt };
}

/** Whether it is the same file with the same content. */
export function isUnchanged(one: FileState, other: FileState): boolean {
  return isSameFile(one, other) && one.size === other.size && one.changedAt === other.changedAt;
}

function isSameFile(one: FileState, other: FileState): boolean {
  // Inode numbers are reused; birth times are not.
  return one.device === other.device && one.inode === other.inode && one.bornAt === other.bornAt;
}
