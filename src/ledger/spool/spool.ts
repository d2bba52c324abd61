import { existsSync } from "node:fs";
import type { Clock } from "../../domain/clock.ts";
import type { RecordFailure } from "../../domain/usage/usage.ts";
import type { FolderLock } from "./folder-lock.ts";
import { createProcessFolder, releaseFolder } from "./process-folder.ts";
import { Segment, type CallEntry } from "./segment.ts";
import { type SpoolFiles, systemFiles } from "./spool-files.ts";
import type { Delivered } from "./spool-record.ts";
import { Turn, type AtTurnEnd } from "./turn.ts";

export interface SpoolOptions {
  /** Folder of the spools of all processes. */
  readonly root: string;
  /** Name of the folder in it that this process creates. */
  readonly name: string;
  /** Replaced in tests to make the disk fail. */
  readonly files?: SpoolFiles | undefined;
  readonly clock: Clock;
  readonly settings: SpoolSettings;
  /** Replaced in tests that control the turns. */
  readonly atTurnEnd?: AtTurnEnd | undefined;
  readonly on: SpoolEvents;
}

export interface SpoolSettings {
  readonly batchRows: number;
  readonly sync: "none" | "group";
  /** Limit on the files of this process. */
  readonly spoolLimitBytes: number;
  readonly segmentBytes: number;
}

export interface SpoolEvents {
  /** Called once when writes start to fail. */
  spoolFailed(error: unknown): void;
  spoolRecovered(): void;
  nearlyFull(bytes: number, limit: number): void;
  /** Called once after `nearlyFull`. */
  hasRoomAgain(): void;
  /** At shutdown: neither the database nor the spool took these rows. */
  lost(rows: number, error: unknown): void;
}

/** Runs after all events that one poll of the sockets has returned. */
const afterEvents: AtTurnEnd = (write) => void setImmediate(write);

/** How far ingest is: this many ended calls of this file are stored, and all of earlier files. */
export interface Progress {
  readonly segment: number;
  readonly closes: number;
}

/** The most that a power cut may lose in `group` mode. */
const syncIntervalMs = 20;
/** Open calls are moved out of files that were sealed this long ago; most have ended by then. */
const carryAfterMs = 10_000;
/** Open calls moved to the active file in one step. */
const carriedAtOnce = 500;
/** Open calls of later files are not moved, so that the spool does not grow without ingest. */
const carriedFiles = 16;
/** With more files than this, nothing is being ingested, and further small ones do not help. */
const idleFiles = 16;
/** Room a full disk must have before the spool writes again. */
const probe = new Uint8Array(64 * 1024);

/**
 * Writes calls to files, oldest first. Ingest reads them and removes stored files. The records of
 * one turn of the event loop are one frame and one write, which succeeds or fails as a whole.
 */
export class Spool {
  readonly #options: SpoolOptions;
  readonly #turn: Turn;
  /** The existing files, oldest first. */
  #segments: Segment[] = [];
  /** Ended calls that could not be written yet. */
  readonly #unwritten = new Set<CallEntry>();
  #lock: FolderLock | undefined;
  #nextNumber = 1;
  /** The last segment; undefined while nothing can be written. */
  #active: Segment | undefined;
  /** A new file without room, which makes earlier files count as sealed, so they can be removed. */
  #candidate: Segment | undefined;
  #failure: unknown;
  #sealedBytes = 0;
  #syncTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(options: SpoolOptions) {
    this.#options = options;
    this.#turn = new Turn(options.atTurnEnd ?? afterEvents, () => void this.flush());
    this.#active = this.#create();
  }

  /** Undefined until the folder could be created. */
  get path(): string | undefined {
    return this.#lock?.folder;
  }

  /** Size of the files that ingest has not removed. */
  get bytes(): number {
    return this.#sealedBytes + (this.#active?.bytes ?? 0) + this.#turn.length;
  }

  get isWritable(): boolean {
    return this.#active !== undefined;
  }

  /** Why writes fail, if they do. */
  get failure(): unknown {
    return this.#failure;
  }

  /** Ended calls that neither the disk nor the database has. */
  get unwritten(): readonly CallEntry[] {
    return [...this.#unwritten].filter(({ isStored }) => !isStored);
  }

  /** Ended calls that are not in the database. */
  countWaiting(progress: Progress): number {
    let closes = this.unwritten.length + this.#turn.ended.length;
    for (const segment of this.#segments) {
      if (segment.number > progress.segment) closes += segment.closes;
      if (segment.number === progress.segment) closes += segment.closes - progress.closes;
    }
    return closes;
  }

  /**
   * Records everything that a replay needs about a call; resolves when the turn is written. An
   * ended call that could not be written is kept for a retry.
   */
  write(entry: CallEntry): Promise<RecordFailure> {
    return this.#turn.add(entry);
  }

  /** Records how much of an open call was delivered. */
  checkpoint(callId: string, delivered: Delivered): void {
    this.#turn.checkpoint(callId, delivered);
  }

  /** Writes what this turn has recorded so far. False if that failed. */
  flush(): boolean {
    const turn = this.#turn.take();
    if (turn === undefined) return true;
    if ((this.#active?.bytes ?? 0) >= this.#options.settings.segmentBytes) this.#rotate();
    const segment = this.#append(turn.frame);
    if (segment === undefined) {
      for (const entry of turn.ended) this.#unwritten.add(entry);
      turn.resolve(new Error("the spool cannot be written", { cause: this.#failure }));
      return false;
    }
    for (const entry of turn.opened) segment.hasOpened(entry);
    for (const entry of turn.ended) {
      this.#unwritten.delete(entry);
      segment.hasEnded(entry);
    }
    turn.resolve(undefined);
    return true;
  }

  /**
   * Called when the database has stored ended calls that could not be written. If such a call is
   * open in a file, its end must still be written, or the file marked.
   */
  storedDirectly(entries: readonly CallEntry[]): void {
    for (const entry of entries) entry.isStored = true;
    for (const segment of this.#segments) segment.settle();
    for (const entry of this.#unwritten) {
      if (entry.isStored && entry.segment === undefined) this.#unwritten.delete(entry);
    }
  }

  /** Goes on in another file; returns its number. Undefined while nothing can be written. */
  beginSegment(): number | undefined {
    this.flush();
    if ((this.#active?.bytes ?? 0) > 0) this.#rotate();
    return this.#active?.number;
  }

  /** Called periodically: follows ingest, replaces files, and retries failed writes. */
  maintain(): void {
    this.flush();
    this.#followRemovals();
    if (this.#active === undefined) this.#recover();
    if (this.#active !== undefined && this.#isDue(this.#active)) this.#rotate();
    this.#carry();
  }

  /** Syncs and closes the files, and releases the folder. Open calls stay in the files. */
  async close(): Promise<void> {
    this.flush();
    clearTimeout(this.#syncTimer);
    const active = this.#active;
    this.#active = undefined;
    if (active !== undefined && this.#options.settings.sync === "group") {
      await active.sync().catch(() => undefined);
    }
    for (const segment of this.#segments) await segment.close();
    // A process that recorded nothing leaves nothing.
    if (active?.number === 1 && active.bytes === 0) active.remove();
    if (this.#lock !== undefined) releaseFolder(this.#lock);
  }

  #rotate(): void {
    const before = this.#active;
    this.#active = undefined;
    if (before !== undefined) this.#seal(before);
    this.#active = this.#create();
  }

  /** Whether a file could be removed as soon as it is ingested; then it is replaced. */
  #isDue(active: Segment): boolean {
    if (active.bytes === 0) return false;
    const isIdle = this.#segments.every(({ open }) => open.size === 0);
    return isIdle && this.#segments.length <= idleFiles;
  }

  /** The file that now has the frame; undefined if it could not be written. */
  #append(frame: Uint8Array): Segment | undefined {
    const segment = this.#active;
    try {
      segment?.append(frame);
    } catch (error) {
      this.#fail(error);
      return undefined;
    }
    if (segment !== undefined) this.#syncSoon();
    return segment;
  }

  #create(): Segment | undefined {
    const { root, name, files = systemFiles } = this.#options;
    try {
      this.#lock ??= createProcessFolder(root, name);
      const { folder } = this.#lock;
      const segment = new Segment(folder, this.#nextNumber, files);
      this.#nextNumber += 1;
      this.#segments.push(segment);
      return segment;
    } catch (error) {
      this.#fail(error);
      return undefined;
    }
  }

  #seal(segment: Segment): void {
    segment.sealedAt = this.#options.clock.monotonic();
    this.#sealedBytes += segment.bytes;
    void (this.#options.settings.sync === "group" ? segment.sync() : Promise.resolve())
      .catch((error: unknown) => this.#fail(error))
      .finally(() => void segment.close());
  }

  /** Stops writing to the file that failed, whose records stand, until another one has room. */
  #fail(error: unknown): void {
    const active = this.#active;
    this.#active = undefined;
    if (active !== undefined) this.#seal(active);
    if (this.#failure === undefined) this.#options.on.spoolFailed(error);
    this.#failure = error ?? new Error("unknown failure");
  }

  #recover(): void {
    this.#candidate ??= this.#create();
    if (this.#candidate === undefined) return;
    try {
      this.#candidate.probe(probe);
    } catch (error) {
      this.#fail(error);
      return;
    }
    this.#active = this.#candidate;
    this.#candidate = undefined;
    for (const entry of this.#unwritten) void this.write(entry);
    if (!this.flush() || !this.isWritable) return;
    this.#failure = undefined;
    this.#options.on.spoolRecovered();
  }

  #followRemovals(): void {
    for (let [oldest] = this.#segments; oldest?.sealedAt !== undefined; [oldest] = this.#segments) {
      if (existsSync(oldest.path)) return;
      this.#segments.shift();
      this.#sealedBytes -= oldest.bytes;
    }
  }

  /** Moves long calls out of old files, which otherwise could not be removed. */
  #carry(): void {
    const now = this.#options.clock.monotonic();
    let carried = 0;
    for (const { sealedAt = now, open } of this.#segments.slice(0, carriedFiles)) {
      if (now - sealedAt < carryAfterMs) return;
      for (const entry of open) {
        if (carried === carriedAtOnce) return;
        void this.write(entry);
        carried += 1;
      }
    }
  }

  #syncSoon(): void {
    if (this.#options.settings.sync !== "group" || this.#syncTimer !== undefined) return;
    this.#syncTimer = setTimeout(() => {
      this.#syncTimer = undefined;
      this.#active?.sync().catch((error: unknown) => this.#fail(error));
    }, syncIntervalMs);
  }
}
