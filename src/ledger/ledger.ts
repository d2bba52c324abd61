import { mkdirSync } from "node:fs";
import type { Clock } from "../domain/clock.ts";
import type { OpenedCall, UsageRecord } from "../domain/usage/usage.ts";
import type { CallLedger } from "../domain/usage/call-ledger.ts";
import type { UsageStore } from "../store/store.ts";
import { CallEntry } from "./spool/segment.ts";
import { writeDeadLetter } from "./dead-letter.ts";
import { Flusher } from "./flusher.ts";
import { FolderLock } from "./spool/folder-lock.ts";
import type { ReadBack } from "./read-back.ts";
import { findLeftFiles, Replay, type LeftFiles, type Replayed } from "./replay.ts";
import type { Segment } from "./spool/segment.ts";
import { SpilledRows } from "./spilled-rows.ts";
import { systemFiles, type SpoolFiles } from "./spool/spool-files.ts";
import { writeCheckpoint } from "./spool/spool-record.ts";
import { Spool } from "./spool/spool.ts";

export interface LedgerOptions {
  /** Created if missing; used by one process only. */
  readonly folder: string;
  readonly store: UsageStore;
  readonly settings: LedgerFlow;
  readonly clock: Clock;
  readonly on: LedgerEvents;
  /** Replaced in tests to make the disk fail. */
  readonly files?: SpoolFiles;
}

export interface LedgerFlow {
  readonly batchRows: number;
  readonly flushIntervalMs: number;
  /** Limit on rows in memory; further ones wait in the spool only. */
  readonly queueRows: number;
  readonly sync: "none" | "group";
  readonly spoolLimitBytes: number;
  readonly segmentBytes: number;
}

export interface LedgerEvents {
  /** The database did not take a batch; it is retried. */
  writeFailed(waitingRows: number, error: unknown): void;
  /** The database took a batch again. */
  written(): void;
  spoolFailed(error: unknown): void;
  spoolRecovered(): void;
  nearlyFull(bytes: number, limit: number): void;
  /** Called once after `nearlyFull`. */
  roomyAgain(): void;
  replayed(replayed: Replayed): void;
  /** At the start: a file in the spool folder that cannot be read was left in place. */
  passedOver(path: string, reason: string): void;
  /** A file of this process was damaged when it was read back; it is kept. */
  damaged(path: string, skippedBytes: number): void;
  deadLettered(callId: string, error: unknown): void;
  /** At shutdown: neither the database nor the spool took these rows. */
  lost(rows: number, error: unknown): void;
}

export interface Ledger extends CallLedger {
  /** Starts to store rows, those of an earlier process first. */
  start(): void;
  /** Stores all rows. Rejects when the database fails. */
  flush(): Promise<void>;
  /** Stores the rows in memory if possible; the rest stays in the spool for the next start. */
  shutDown(): Promise<void>;
  /** Rows that are not in the database yet, without those of an earlier process. */
  readonly waiting: number;
  /** Those of the waiting rows that are in memory. */
  readonly rowsInMemory: number;
  readonly spoolBytes: number;
  /** Whether rows of an earlier process are still being stored. */
  readonly isReplaying: boolean;
  whyNotReady(): string | undefined;
}

const tickMs = 1_000;
/** The spool is nearly full above the first share, until it falls below the second. */
const nearlyFullShare = 0.8;
const roomyShare = 0.7;
/** Rows leave memory in parts of this share of the queue, one spool file each. */
const spillShare = 0.1;

/** Opens the ledger in its folder. Throws when the folder is unusable or another process has it. */
export function openLedger(options: LedgerOptions): Ledger {
  mkdirSync(options.folder, { recursive: true, mode: 0o700 });
  const lock = new FolderLock(options.folder);
  try {
    return new SpooledLedger(options, lock, findLeftFiles(options.folder, options.on));
  } catch (error) {
    lock.release();
    throw error;
  }
}

class SpooledLedger implements Ledger {
  readonly #options: LedgerOptions;
  readonly #lock: FolderLock;
  readonly #spool: Spool;
  readonly #flusher: Flusher;
  readonly #open = new Map<string, CallEntry>();
  readonly #queue = new Set<CallEntry>();
  readonly #spillRows: number;
  readonly #left: LeftFiles;
  #replay: Replay | undefined;
  #isReplaying: boolean;
  #spilledRows = 0;
  #isNearlyFull = false;
  #isClosed = false;
  #ticking: ReturnType<typeof setInterval> | undefined;

  constructor(options: LedgerOptions, lock: FolderLock, left: LeftFiles) {
    const { folder, settings, clock, on, files = systemFiles } = options;
    this.#options = options;
    this.#lock = lock;
    this.#left = left;
    this.#isReplaying = left.paths.length > 0;
    this.#replay = this.#isReplaying ? this.#createReplay(files) : undefined;
    this.#spillRows = Math.ceil(settings.queueRows * spillShare);
    this.#spool = new Spool({
      folder,
      files,
      clock,
      firstNumber: left.nextNumber,
      segmentBytes: settings.segmentBytes,
      sync: settings.sync,
      onFailed: (error) => on.spoolFailed(error),
      onRecovered: () => on.spoolRecovered(),
      onSealed: (segment) => this.#spill(segment),
    });
    this.#flusher = this.#createFlusher();
  }

  get hasRoom(): boolean {
    return !this.#isClosed && this.#spool.active !== undefined && !this.#isFull;
  }

  get waiting(): number {
    return this.#queue.size + this.#spilledRows;
  }

  get rowsInMemory(): number {
    return this.#queue.size;
  }

  get spoolBytes(): number {
    return this.#spool.bytes + (this.#isReplaying ? this.#left.bytes : 0);
  }

  get isReplaying(): boolean {
    return this.#isReplaying;
  }

  open(call: OpenedCall): void {
    if (this.#isClosed) throw new Error("the ledger is closed");
    const entry = new CallEntry(call);
    if (!this.#spool.write(entry)) {
      throw new Error("the spool cannot be written", { cause: this.#spool.failure });
    }
    this.#open.set(call.id, entry);
    this.#watchSpace();
  }

  checkpoint(callId: string, { outputTokens }: { readonly outputTokens: number }): void {
    const entry = this.#open.get(callId);
    if (entry === undefined || this.#isClosed) return;
    entry.delivered = { outputTokens, at: this.#options.clock.now() };
    // A lost checkpoint costs little: the next one replaces it.
    this.#spool.append(writeCheckpoint(callId, entry.delivered));
  }

  close(record: UsageRecord): void {
    // After shutdown an open call is left to the next start, which records it as interrupted.
    if (this.#isClosed) return;
    const entry = this.#open.get(record.id) ?? new CallEntry();
    this.#open.delete(record.id);
    entry.record = record;
    this.#spool.write(entry);
    this.#queue.add(entry);
    this.#spillEarly();
    this.#flusher.rowAdded();
    this.#watchSpace();
  }

  start(): void {
    if (this.#ticking !== undefined || this.#isClosed) return;
    this.#ticking = setInterval(() => {
      this.#spool.maintain();
      this.#watchSpace();
    }, tickMs);
    this.#flusher.start();
  }

  async flush(): Promise<void> {
    this.#spool.maintain();
    await this.#flusher.flush();
    this.#spool.tidy();
    this.#watchSpace();
  }

  async shutDown(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    clearInterval(this.#ticking);
    await this.#flusher.stop();
    this.#spool.maintain();
    await this.#spool.close();
    const { unwrittenRows, failure } = this.#spool;
    if (unwrittenRows > 0) this.#options.on.lost(unwrittenRows, failure);
    this.#lock.release();
  }

  whyNotReady(): string | undefined {
    const what = "usage cannot be recorded";
    if (this.#spool.active === undefined) return `${what}: the spool cannot be written`;
    return this.#isFull ? `${what}: the spool is full` : undefined;
  }

  get #isFull(): boolean {
    return this.spoolBytes >= this.#options.settings.spoolLimitBytes;
  }

  #createReplay(files: SpoolFiles): Replay {
    return new Replay({
      paths: this.#left.paths,
      files,
      onDone: (replayed) => {
        this.#isReplaying = false;
        this.#options.on.replayed(replayed);
      },
    });
  }

  #createFlusher(): Flusher {
    const { folder, store, settings, clock, on } = this.#options;
    return new Flusher({
      store,
      batchRows: settings.batchRows,
      flushIntervalMs: settings.flushIntervalMs,
      queue: this.#queue,
      beginReadBack: () => this.#beginReadBack(),
      deadLetter: (row) => {
        writeDeadLetter(folder, row, clock.now());
        on.deadLettered(row.record.id, row.error);
      },
      onStored: (entries) => {
        for (const entry of entries) this.#spool.forget(entry);
        this.#spool.tidy();
      },
      onFailed: (error) => on.writeFailed(this.waiting, error),
      onRecovered: () => on.written(),
    });
  }

  #beginReadBack(): ReadBack | undefined {
    const replay = this.#replay;
    this.#replay = undefined;
    if (replay !== undefined) return replay;
    const segment = this.#spool.spilled;
    if (segment === undefined) return undefined;
    return new SpilledRows(segment, {
      onDamage: (skippedBytes) => this.#options.on.damaged(segment.path, skippedBytes),
      onDone: (rows) => {
        this.#spilledRows -= rows;
        this.#spool.tidy();
      },
    });
  }

  /** Ends a file early when memory is full, so that its rows can leave memory. */
  #spillEarly(): void {
    const rows = this.#spool.active?.ended.size ?? 0;
    const isOver = this.#queue.size > this.#options.settings.queueRows;
    if (isOver && rows >= this.#spillRows) this.#spool.rotate();
  }

  /** Drops the rows of a sealed file from memory when there are too many. */
  #spill(segment: Segment): void {
    if (this.#queue.size <= this.#options.settings.queueRows) return;
    segment.spilledRows = segment.ended.size;
    this.#spilledRows += segment.spilledRows;
    for (const entry of segment.ended) {
      this.#queue.delete(entry);
      entry.segment = undefined;
    }
    segment.ended.clear();
  }

  #watchSpace(): void {
    const bytes = this.spoolBytes;
    const { spoolLimitBytes } = this.#options.settings;
    if (!this.#isNearlyFull && bytes >= spoolLimitBytes * nearlyFullShare) {
      this.#isNearlyFull = true;
      this.#options.on.nearlyFull(bytes, spoolLimitBytes);
    } else if (this.#isNearlyFull && bytes < spoolLimitBytes * roomyShare) {
      this.#isNearlyFull = false;
      this.#options.on.roomyAgain();
    }
  }
}
