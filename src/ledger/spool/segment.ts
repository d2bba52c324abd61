import { join } from "node:path";
import type { OpenedCall, UsageRecord } from "../../domain/usage/usage.ts";
import { putAway, type SpoolFiles } from "./spool-files.ts";
import { writeCheckpoint, writeClose, writeOpen, type Delivered } from "./spool-record.ts";

export interface SegmentPlace {
  readonly folder: string;
  readonly number: number;
  readonly files: SpoolFiles;
  /** Monotonic milliseconds. */
  readonly createdAt: number;
}

/** One file of the spool. */
export class Segment {
  readonly path: string;
  readonly createdAt: number;
  /** Open calls whose latest full record is in this file. */
  readonly open = new Set<CallEntry>();
  /** Ended calls that are in this file and not in the database. */
  readonly ended = new Set<CallEntry>();
  /** Ended calls that are no longer in memory and must be read back from this file. */
  spilledRows = 0;
  /** A sync failed: the records must be written again to another file. */
  isSuspect = false;
  /** Damaged bytes found when the file was read back. */
  skippedBytes = 0;
  /** File and offset its calls moved to; this file must stay until that is synced. */
  successor: { readonly segment: Segment; readonly bytes: number } | undefined;
  readonly #folder: string;
  readonly #files: SpoolFiles;
  /** Whether the folder entry has been synced. */
  #isInFolder = false;
  #file: number | undefined;
  #bytes = 0;
  #syncedBytes = 0;
  /** Number of `clear` calls. */
  #clearings = 0;
  #syncing: Promise<void> | undefined;

  /** Creates the file. Throws system errors. */
  constructor({ folder, number, files, createdAt }: SegmentPlace) {
    this.path = segmentPath(folder, number);
    this.createdAt = createdAt;
    this.#folder = folder;
    this.#files = files;
    this.#file = files.create(this.path);
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Whether a call in memory still needs this file. */
  get isNeeded(): boolean {
    return this.open.size + this.ended.size > 0;
  }

  /** Whether the bytes up to there are as durable as they get. */
  isSafeUpTo(bytes: number): boolean {
    return this.isClosed || bytes <= this.#syncedBytes;
  }

  get isClosed(): boolean {
    return this.#file === undefined;
  }

  /**
   * Appends all bytes. If that throws, the file may end in a partial frame, which readers skip;
   * nothing may be appended after it.
   */
  append(bytes: Uint8Array): void {
    const file = this.#openFile();
    let written = 0;
    while (written < bytes.length) {
      const rest = written === 0 ? bytes : bytes.subarray(written);
      written += this.#files.append(file, rest);
    }
    this.#bytes += bytes.length;
  }

  /** Throws unless there is room for `bytes`. */
  probe(bytes: Uint8Array): void {
    const before = this.#bytes;
    this.append(bytes);
    this.#bytes = before;
    this.#files.truncate(this.#openFile(), before);
  }

  /** Empties the file. */
  clear(): void {
    this.#files.truncate(this.#openFile(), 0);
    this.#bytes = 0;
    this.#syncedBytes = 0;
    this.#clearings += 1;
  }

  /** Resolves when all earlier appends are on disk. Rejects once per failure. */
  async sync(): Promise<void> {
    while (this.#syncing !== undefined) await this.#syncing.catch(() => undefined);
    const file = this.#file;
    const bytes = this.#bytes;
    const clearings = this.#clearings;
    if (bytes <= this.#syncedBytes || file === undefined) return;
    this.#syncing = this.#bringToDisk(file);
    try {
      await this.#syncing;
      // A sync from before a clear proves nothing about later appends.
      if (clearings === this.#clearings) this.#syncedBytes = bytes;
    } catch (error) {
      // The system reports a lost write only once.
      this.isSuspect = true;
      throw error;
    } finally {
      this.#syncing = undefined;
    }
  }

  /** Closes the file for appends and keeps it. */
  async close(): Promise<void> {
    while (this.#syncing !== undefined) await this.#syncing.catch(() => undefined);
    const file = this.#file;
    this.#file = undefined;
    if (file !== undefined) this.#files.close(file);
  }

  remove(): void {
    putAway(this.#files, this.path, this.skippedBytes);
  }

  async #bringToDisk(file: number): Promise<void> {
    await this.#files.sync(file);
    if (this.#isInFolder) return;
    await this.#files.syncFolder(this.#folder);
    this.#isInFolder = true;
  }

  #openFile(): number {
    if (this.#file === undefined) throw new Error(`${this.path} is closed`);
    return this.#file;
  }
}

/** Names sort like their numbers below a hundred million. */
export function segmentPath(folder: string, number: number): string {
  return join(folder, `${String(number).padStart(8, "0")}.spool`);
}

const segmentName = /^(\d{8,})\.(?:spool|damaged)$/;

/** The number in a spool file's name; undefined for other names. */
export function segmentNumber(name: string): number | undefined {
  const number = Number(segmentName.exec(name)?.[1]);
  // The next number must be safe too.
  return Number.isSafeInteger(number + 1) ? number : undefined;
}

/** A call that is not in the database yet. */
export class CallEntry {
  /** Undefined for a call refused before it ran. */
  readonly call: OpenedCall | undefined;
  delivered: Delivered | undefined;
  /** Set once the call has ended. */
  record: UsageRecord | undefined;
  /** The spool file that has this call; undefined while it could not be written. */
  segment: Segment | undefined;

  constructor(call?: OpenedCall) {
    this.call = call;
  }

  /** The records that a replay needs. */
  toRecords(): readonly string[] {
    const { call, delivered, record } = this;
    if (record !== undefined) return [writeClose(record)];
    if (call === undefined) return [];
    if (delivered === undefined) return [writeOpen(call)];
    return [writeOpen(call), writeCheckpoint(call.id, delivered)];
  }
}
