import type { OpenedCall, UsageRecord } from "../../domain/usage/usage.ts";
import { markSettled, segmentPath } from "./segment-files.ts";
import type { SpoolFiles } from "./spool-files.ts";
import type { Delivered } from "./spool-record.ts";

/** One file of the spool. */
export class Segment {
  readonly number: number;
  readonly path: string;
  /** Monotonic milliseconds; undefined while it is written. */
  sealedAt: number | undefined;
  /** Open calls whose latest full record is in this file. */
  readonly open = new Set<CallEntry>();
  /** Records of ended calls in this file. */
  closes = 0;
  readonly #folder: string;
  readonly #files: SpoolFiles;
  /** Whether the folder entry has been synced. */
  #isInFolder = false;
  #file: number | undefined;
  #bytes = 0;
  #syncedBytes = 0;
  #syncing: Promise<void> | undefined;

  /** Creates the file. Throws system errors. */
  constructor(folder: string, number: number, files: SpoolFiles) {
    this.number = number;
    this.path = segmentPath(folder, number);
    this.#folder = folder;
    this.#files = files;
    this.#file = files.create(this.path);
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Called after the record of an open call was appended. */
  hasOpened(entry: CallEntry): void {
    entry.segment?.open.delete(entry);
    entry.segment = this;
    this.open.add(entry);
  }

  /** Called after the record of an ended call was appended. */
  hasEnded(entry: CallEntry): void {
    entry.segment?.open.delete(entry);
    entry.segment = undefined;
    this.closes += 1;
  }

  /** Appends all bytes. If it throws, nothing may follow: readers skip a last partial frame. */
  append(bytes: Uint8Array): void {
    const file = this.#openFile();
    let written = 0;
    while (written < bytes.length) {
      const rest = written === 0 ? bytes : bytes.subarray(written);
      written += this.#files.append(file, rest);
    }
    this.#bytes += bytes.length;
  }

  /** Throws unless there is room for `bytes`. May be called again after a failure. */
  probe(bytes: Uint8Array): void {
    const before = this.#bytes;
    this.#files.truncate(this.#openFile(), before);
    this.append(bytes);
    this.#bytes = before;
    this.#files.truncate(this.#openFile(), before);
  }

  /** Lets ingest remove a sealed file whose open calls have ended and are all in the database. */
  settle(): void {
    const open = [...this.open];
    const isOver = open.length > 0 && open.every(({ isStored }) => isStored);
    if (this.sealedAt === undefined || !isOver) return;
    try {
      markSettled(this.path);
    } catch {
      // The ends of its calls are written as soon as there is room.
      return;
    }
    for (const entry of open) entry.segment = undefined;
    this.open.clear();
  }

  /** Resolves when all earlier appends are on disk. Rejects once per failure. */
  async sync(): Promise<void> {
    while (this.#syncing !== undefined) await this.#syncing.catch(() => undefined);
    const file = this.#file;
    const bytes = this.#bytes;
    if (bytes <= this.#syncedBytes || file === undefined) return;
    this.#syncing = this.#bringToDisk(file);
    try {
      await this.#syncing;
      this.#syncedBytes = bytes;
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

  /** Removes the file. If that fails, ingest removes it. */
  remove(): void {
    try {
      this.#files.remove(this.path);
    } catch {
      // The file has no records.
    }
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

/** A call that is open, or that has ended and is not written yet. */
export class CallEntry {
  /** Undefined for a call refused before it ran. */
  readonly call: OpenedCall | undefined;
  delivered: Delivered | undefined;
  /** Set once the call has ended. */
  record: UsageRecord | undefined;
  /** Whether the database has the record, which the spool could not take. */
  isStored = false;
  /** The spool file in which this call is open. */
  segment: Segment | undefined;

  constructor(call?: OpenedCall) {
    this.call = call;
  }
}
