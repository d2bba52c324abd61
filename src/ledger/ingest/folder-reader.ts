import { existsSync, statSync } from "node:fs";
import { errorCode } from "../../domain/system-files.ts";
import type { UsageRecord } from "../../domain/usage/usage.ts";
import { limitHistoryMs } from "../../domain/limits/slots.ts";
import { releaseFolder } from "../spool/process-folder.ts";
import { FolderLock } from "../spool/folder-lock.ts";
import {
  isSettled,
  listSegments,
  readSnapshotNumber,
  snapshotPath,
  whyUnreadable,
  type SegmentFile,
} from "../spool/segment-files.ts";
import type { SpoolFiles } from "../spool/spool-files.ts";
import { readCall, type Delivered } from "../spool/spool-record.ts";
import type { Progress } from "../spool/spool.ts";
import { RecordReader } from "./record-reader.ts";

/** What was found in the folder of an ended process. */
export interface Replayed {
  /** Calls that had ended. The database may already have some of them. */
  readonly closed: number;
  /** Calls that were open when the process ended. */
  readonly interrupted: number;
  /** Unreadable bytes; their files are kept. */
  readonly skippedBytes: number;
}

export interface FolderEvents {
  replayed(replayed: Replayed): void;
  /** A file of the spool cannot be read and was left in place. */
  fileSkipped(path: string, reason: string): void;
  /** A file of a running process was damaged; it is kept. */
  damaged(path: string, skippedBytes: number): void;
}

export interface FolderReaderOptions {
  readonly path: string;
  readonly sync: "none" | "group";
  readonly files: SpoolFiles;
  readonly on: FolderEvents;
}

interface ReadSegment extends SegmentFile {
  /** Calls opened in this file that are neither closed nor opened again in a later file. */
  open: number;
  /** Whether the file is sealed and was read completely. */
  isRead: boolean;
  skippedBytes: number;
  /** The latest file in which a call of this file was opened again. */
  successor: ReadSegment | undefined;
}

interface OpenCall {
  /** What opened it, which is read only if it turns out to be interrupted. */
  line: string;
  /** Whether the line is a slice, which keeps the text of its whole frame in memory. */
  isSlice: boolean;
  readonly segment: ReadSegment;
  delivered: Delivered | undefined;
}

const openTriesAwaited = 30;

/** Reads the spool of one process in order, and removes its files once they are stored. */
export class FolderReader {
  readonly #options: FolderReaderOptions;
  /** The existing files, oldest first. */
  readonly #segments: ReadSegment[] = [];
  readonly #skipped = new Set<string>();
  readonly #open = new Map<string, OpenCall>();
  /** The lock of the folder: opened while its process runs, held once it has ended. */
  #lock: FolderLock | undefined;
  /** Whether the files were listed after the process had ended: there will be no more. */
  #isComplete = false;
  /** The oldest file that was not read completely. */
  #reading: ReadSegment | undefined;
  #reader: RecordReader | undefined;
  #openTries = 0;
  #lastNumber = -1;
  /** Ended calls read so far in the current file. */
  #closes = 0;
  #progress: Progress = { segment: 0, closes: 0 };
  #replayed = { closed: 0, interrupted: 0, skippedBytes: 0 };
  #isFinished = false;
  #isWhollyStored = false;
  /** As in `#keptSince`. */
  #firstKept = Number.POSITIVE_INFINITY;

  constructor(options: FolderReaderOptions) {
    this.#options = options;
  }

  get progress(): Progress {
    return this.#progress;
  }

  /** Whether files of a process that ended are still being stored. */
  get isReplaying(): boolean {
    return this.#hasEnded && this.#segments.length > 0;
  }

  /**
   * Whether a process that ended may have left calls that are not stored. Nobody waits for a file that
   * fails to open again and again.
   */
  get isBehind(): boolean {
    return this.#hasEnded && !this.#isWhollyStored && this.#openTries < openTriesAwaited;
  }

  /** Size of the files that a process has left. */
  get leftBytes(): number {
    if (!this.#hasEnded) return 0;
    const sizes = this.#segments.map(({ path }) => statSync(path, { throwIfNoEntry: false })?.size);
    return sizes.reduce<number>((sum, size = 0) => sum + size, 0);
  }

  /** Whether the process has ended, and all that it wrote is stored. */
  get isFinished(): boolean {
    return this.#isFinished;
  }

  /** Checks whether the process has ended, and which files there are. */
  look(): void {
    // Checked before the files are listed: a process that has ended has sealed them all.
    if (this.#isComplete) return;
    if (!this.#hasEnded) this.#tryLock();
    for (const { number, path } of this.#list()) {
      if (number <= this.#lastNumber || this.#skipped.has(path)) continue;
      const reason = whyUnreadable(path);
      if (reason !== undefined) {
        this.#skip(path, reason);
        continue;
      }
      const state = { open: 0, isRead: false, skippedBytes: 0, successor: undefined };
      this.#segments.push({ number, path, ...state });
      this.#reading ??= this.#segments.at(-1);
      this.#lastNumber = number;
    }
  }

  /**
   * Adds ended calls to rows, up to a limit of rows and a limit of records of any kind. False when
   * there is nothing more for now. Throws when a file cannot be opened; nothing is lost by that.
   */
  read(rows: UsageRecord[], limits: { readonly rows: number; readonly records: number }): boolean {
    for (let records = 0; records < limits.records && rows.length < limits.rows; records += 1) {
      const segment = this.#reading;
      if (segment === undefined) return this.#hasEnded && this.#takeInterrupted(rows, limits.rows);
      if (!this.#step(segment, rows)) return false;
    }
    return true;
  }

  /** Called when all rows read so far are stored: removes files that are no longer needed. */
  async stored(): Promise<void> {
    this.#progress = {
      segment: this.#reading?.number ?? this.#lastNumber + 1,
      closes: this.#closes,
    };
    for (const open of this.#open.values()) {
      if (open.isSlice) open.line = Buffer.from(open.line).toString();
      open.isSlice = false;
    }
    this.#isWhollyStored = this.#isComplete && this.#reading === undefined && this.#open.size === 0;
    if (this.#segments[0]?.isRead === true) this.#firstKept = this.#keptSince();
    for (let [oldest] = this.#segments; oldest !== undefined && this.#isSpent(oldest);) {
      // After a failure, a running process's file is tried again and an ended one's is left to the
      // next start; this changes nothing for either.
      if (!(await this.#retire(oldest)) && !this.#hasEnded) return;
      this.#segments.shift();
      [oldest] = this.#segments;
    }
    if (this.#hasEnded && this.#segments.length === 0) this.#finish();
  }

  /**
   * The first file that the next process needs for its limits, also while this one runs, as it may
   * be killed; infinite: it needs none.
   */
  #keptSince(): number {
    const { path } = this.#options;
    try {
      const number = readSnapshotNumber(path);
      if (number === undefined) return Number.POSITIVE_INFINITY;
      const { mtimeMs } = statSync(snapshotPath(path, number));
      return Date.now() - mtimeMs < limitHistoryMs ? number : Number.POSITIVE_INFINITY;
    } catch {
      return Number.POSITIVE_INFINITY;
    }
  }

  /** Stops reading; what is not stored stays. */
  abandon(): void {
    this.#reader?.close();
    this.#unlock();
  }

  get #hasEnded(): boolean {
    return this.#lock?.isTaken === true;
  }

  /** A process that ends removes its folder if no open call is left in it. */
  get #isGone(): boolean {
    return this.#open.size === 0 && !existsSync(this.#options.path);
  }

  #tryLock(): void {
    const { path } = this.#options;
    try {
      if (this.#lock?.take() === false) return;
      // A file that was open before may have been removed with its folder.
      this.#unlock();
      this.#lock = new FolderLock(path);
      this.#lock.take();
    } catch (error) {
      this.#unlock();
      this.#isFinished = this.#isGone;
      if (this.#isFinished) this.abandon();
      else this.#skip(path, error instanceof Error ? error.message : String(error));
    }
  }

  #unlock(): void {
    this.#lock?.release();
    this.#lock = undefined;
  }

  #list(): readonly SegmentFile[] {
    try {
      const segments = listSegments(this.#options.path);
      this.#isComplete = this.#hasEnded;
      return segments;
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      if (!this.#isGone) this.#skip(this.#options.path, reason);
      return [];
    }
  }

  #skip(path: string, reason: string): void {
    if (this.#skipped.has(path)) return;
    this.#skipped.add(path);
    this.#options.on.fileSkipped(path, reason);
  }

  /** Reads one record or moves on to the next file. False when there is no more for now. */
  #step(segment: ReadSegment, rows: UsageRecord[]): boolean {
    const isSealed = this.#hasEnded || segment !== this.#segments.at(-1);
    this.#reader ??= new RecordReader(segment.path);
    this.#openTries += 1;
    const record = this.#reader.next(isSealed);
    this.#openTries = 0;
    switch (record?.kind) {
      case "open":
        this.#opened(record.id, record.line, segment);
        return true;
      case "checkpoint": {
        const open = this.#open.get(record.id);
        if (open !== undefined) open.delivered = record.delivered;
        return true;
      }
      case "close":
        this.#closes += 1;
        this.#replayed.closed += this.#hasEnded ? 1 : 0;
        this.#ended(record.record.id);
        rows.push(record.record);
        return true;
      case undefined:
        if (isSealed) this.#finishSegment(segment, this.#reader);
        return isSealed;
    }
  }

  #opened(callId: string, line: string, segment: ReadSegment): void {
    const before = this.#ended(callId);
    if (before !== undefined && before !== segment) before.successor = segment;
    this.#open.set(callId, { line, isSlice: true, segment, delivered: undefined });
    segment.open += 1;
  }

  /** The file in which the call was open, if it was. */
  #ended(callId: string): ReadSegment | undefined {
    const open = this.#open.get(callId);
    if (open === undefined) return undefined;
    open.segment.open -= 1;
    this.#open.delete(callId);
    return open.segment;
  }

  #isSpent(segment: ReadSegment): boolean {
    if (!segment.isRead || segment.number >= this.#firstKept) return false;
    if (segment.open === 0) return true;
    if (!isSettled(segment.path)) return false;
    const open = [...this.#open].filter(([, call]) => call.segment === segment);
    for (const [id] of open) this.#ended(id);
    return true;
  }

  #finishSegment(segment: ReadSegment, reader: RecordReader): void {
    segment.isRead = true;
    segment.skippedBytes = reader.skippedBytes;
    reader.close();
    this.#reader = undefined;
    this.#reading = this.#segments.find(({ isRead }) => !isRead);
    this.#closes = 0;
  }

  #takeInterrupted(rows: UsageRecord[], limit: number): boolean {
    for (const [id, open] of this.#open) {
      if (rows.length >= limit) return true;
      this.#ended(id);
      this.#replayed.interrupted += 1;
      const record = interruptedCall(open);
      if (record !== undefined) rows.push(record);
      // Its file is kept for the operator.
      else open.segment.skippedBytes += Buffer.byteLength(open.line);
    }
    return false;
  }

  async #retire({ path, skippedBytes, successor }: ReadSegment): Promise<boolean> {
    const { sync, files, on } = this.#options;
    try {
      if (successor !== undefined && sync === "group") await files.syncPath(successor.path);
      // A damaged one is kept for the operator.
      if (skippedBytes === 0) files.remove(path);
      else files.rename(path, path.replace(/spool$/, "damaged"));
    } catch (error) {
      if (errorCode(error) !== "ENOENT") return false;
    }
    if (this.#hasEnded) this.#replayed.skippedBytes += skippedBytes;
    else if (skippedBytes > 0) on.damaged(path, skippedBytes);
    return true;
  }

  #finish(): void {
    const { closed, interrupted, skippedBytes } = this.#replayed;
    if (closed + interrupted + skippedBytes > 0) this.#options.on.replayed(this.#replayed);
    if (this.#lock !== undefined) releaseFolder(this.#lock);
    this.#lock = undefined;
    this.#isFinished = true;
  }
}

/** The row of a call that was open when its process ended; undefined: it cannot be read. */
function interruptedCall({ line, delivered }: OpenCall): UsageRecord | undefined {
  const call = readCall(line);
  if (call === undefined) return undefined;
  const { startedAt } = call;
  const { outputTokens, at } = delivered ?? { outputTokens: 0, at: startedAt };
  return {
    ...call,
    target: undefined,
    outputTokens,
    cachedInputTokens: 0,
    usageSource: "estimated",
    outcome: "interrupted",
    status: 500,
    code: "gateway_interrupted",
    attempts: 1,
    firstEventMs: undefined,
    durationMs: Math.max(0, at - startedAt),
  };
}
