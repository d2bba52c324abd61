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
  /** Calls under way whose latest whole account is here. */
  readonly open = new Set<CallEntry>();
  /** Calls that ended, whose account is here and not in the database. */
  readonly ended = new Set<CallEntry>();
  /** Ended calls that are no more in memory: they are to be read back from here. */
  spilledRows = 0;
  /** The disk may not have what was written: it must be written again elsewhere. */
  isSuspect = false;
  /** Found damaged when it was read back. */
  skippedBytes = 0;
  /** Where calls of this file went, and how far: until that is on the disk, this is the proof. */
  successor: { readonly segment: Segment; readonly bytes: number } | undefined;
  readonly #folder: string;
  readonly #files: SpoolFiles;
  /** Whether the disk knows that there is this file. */
  #isInFolder = false;
  #file: number | undefined;
  #bytes = 0;
  #syncedBytes = 0;
  /** How often it was cleared. */
  #clearings = 0;
  #syncing: Promise<void> | undefined;

  /** Makes the file. Throws what the system does. */
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

  /** Whether a call needs this file that memory knows of. */
  get isNeeded(): boolean {
    return this.open.size + this.ended.size > 0;
  }

  /** Whether what was written up to there is as safe as it gets. */
  isSafeUpTo(bytes: number): boolean {
    return this.isClosed || bytes <= this.#syncedBytes;
  }

  get isClosed(): boolean {
    return this.#file === undefined;
  }

  /**
   * Writes all of it. When that throws, the file may end in the begin of a frame, which readers pass
   * over; nothing may be written behind it.
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

  /** Throws unless there is room for that many bytes. */
  probe(bytes: Uint8Array): void {
    const before = this.#bytes;
    this.append(bytes);
    this.#bytes = before;
    this.#files.truncate(this.#openFile(), before);
  }

  /** Forgets all that is in the file. */
  clear(): void {
    this.#files.truncate(this.#openFile(), 0);
    this.#bytes = 0;
    this.#syncedBytes = 0;
    this.#clearings += 1;
  }

  /** Resolves when all that was appended before lies on the disk. Rejects once for each failure. */
  async sync(): Promise<void> {
    while (this.#syncing !== undefined) await this.#syncing.catch(() => undefined);
    const file = this.#file;
    const bytes = this.#bytes;
    const clearings = this.#clearings;
    if (bytes <= this.#syncedBytes || file === undefined) return;
    this.#syncing = this.#bringToDisk(file);
    try {
      await this.#syncing;
      // What was cleared meanwhile says nothing of what was written since.
      if (clearings === this.#clearings) this.#syncedBytes = bytes;
    } catch (error) {
      // The system reports a lost write once and then forgets it.
      this.isSuspect = true;
      throw error;
    } finally {
      this.#syncing = undefined;
    }
  }

  /** No more is written. The file stays. */
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

/** Names sort like numbers as long as there are fewer than a hundred million. */
export function segmentPath(folder: string, number: number): string {
  return join(folder, `${String(number).padStart(8, "0")}.spool`);
}

const segmentName = /^(\d{8,})\.(?:spool|damaged)$/;

/** The number in the name of a file of the spool; undefined for any other name. */
export function segmentNumber(name: string): number | undefined {
  const number = Number(segmentName.exec(name)?.[1]);
  // One that cannot be counted on from is none of the spool's.
  return Number.isSafeInteger(number + 1) ? number : undefined;
}

/** One call that the database does not have yet, as memory knows it. */
export class CallEntry {
  /** Undefined for a call that was refused before it could run. */
  readonly call: OpenedCall | undefined;
  delivered: Delivered | undefined;
  /** Set when the call has ended. */
  record: UsageRecord | undefined;
  /** Where the spool has what is above; undefined while it could not be written. */
  segment: Segment | undefined;

  constructor(call?: OpenedCall) {
    this.call = call;
  }

  /** All that a replay has to know of the call. */
  toRecords(): readonly string[] {
    const { call, delivered, record } = this;
    if (record !== undefined) return [writeClose(record)];
    if (call === undefined) return [];
    if (delivered === undefined) return [writeOpen(call)];
    return [writeOpen(call), writeCheckpoint(call.id, delivered)];
  }
}
