import type { Clock } from "../../domain/clock.ts";
import type { CallEntry } from "./segment.ts";
import { FrameEncoder } from "./frame.ts";
import { Segment } from "./segment.ts";
import type { SpoolFiles } from "./spool-files.ts";

export interface SpoolOptions {
  readonly folder: string;
  readonly files: SpoolFiles;
  readonly clock: Clock;
  /** Number of the first file; lower ones belong to an earlier process. */
  readonly firstNumber: number;
  readonly segmentBytes: number;
  readonly sync: "none" | "group";
  /** Called once when writes start to fail. */
  readonly onFailed: (error: unknown) => void;
  readonly onRecovered: () => void;
  /** Called when a file is complete and, with group sync, on disk. */
  readonly onSealed: (segment: Segment) => void;
}

/** The most that a power cut may lose with group sync. */
const syncIntervalMs = 20;
/** Files are replaced after this time, so that a replay does not repeat old rows. */
const segmentLifetimeMs = 600_000;
/** Open calls moved out of an old file in one step. */
const carriedAtOnce = 500;
/** Room a full disk must have before the spool writes again. */
const probe = new Uint8Array(64 * 1024);

/**
 * Writes calls to files, oldest first. A file is removed once the database has all of its calls and
 * every older file is gone: a later record corrects an earlier one, so it must not go first.
 */
export class Spool {
  readonly #options: SpoolOptions;
  readonly #encoder = new FrameEncoder();
  readonly #segments: Segment[] = [];
  /** Ended calls that could not be written yet. */
  readonly #unwritten = new Set<CallEntry>();
  #nextNumber: number;
  /** The last segment; undefined while nothing can be written. */
  #active: Segment | undefined;
  #failure: unknown;
  #sealedBytes = 0;
  #syncTimer: ReturnType<typeof setTimeout> | undefined;
  #isClosed = false;

  constructor(options: SpoolOptions) {
    this.#options = options;
    this.#nextNumber = options.firstNumber;
    this.#begin();
  }

  get bytes(): number {
    return this.#sealedBytes + (this.#active?.bytes ?? 0);
  }

  /** Why writes fail, if they do. */
  get failure(): unknown {
    return this.#failure;
  }

  get unwrittenRows(): number {
    return this.#unwritten.size;
  }

  /** The file being written; undefined while nothing can be written. */
  get active(): Segment | undefined {
    return this.#active;
  }

  /** A file with ended calls to read back. */
  get spilled(): Segment | undefined {
    return this.#segments.find(({ spilledRows }) => spilledRows > 0);
  }

  /** Writes all records of a call. False on failure; an ended call is then kept for a retry. */
  write(entry: CallEntry): boolean {
    // All records of a call go into one file.
    this.#rotateIfFull();
    for (const record of entry.toRecords()) {
      if (this.#append(record)) continue;
      if (entry.record !== undefined) this.#unwritten.add(entry);
      return false;
    }
    this.#unwritten.delete(entry);
    this.#moveToActive(entry);
    return true;
  }

  /** Adds a record to a call that was written before. */
  append(record: string): boolean {
    this.#rotateIfFull();
    return this.#append(record);
  }

  /** The database has the call, or will get it when the spool is read back. */
  forget(entry: CallEntry): void {
    this.#unwritten.delete(entry);
    this.#leaveSegment(entry);
  }

  /** Starts a new file. */
  rotate(): void {
    const before = this.#active;
    this.#active = undefined;
    if (before !== undefined) this.#seal(before);
    this.#begin();
  }

  /** Called periodically: replaces an old file and retries failed writes. */
  maintain(): void {
    if (this.#active === undefined && !this.#isClosed) this.#recover();
    const active = this.#active;
    if (active !== undefined && active.bytes > 0) {
      const ageMs = this.#options.clock.monotonic() - active.createdAt;
      if (ageMs > segmentLifetimeMs) this.rotate();
    }
    this.tidy();
  }

  /** Removes files that are no longer needed. */
  tidy(): void {
    for (;;) {
      const [oldest] = this.#segments;
      if (oldest === undefined) return;
      if (oldest === this.#active) return this.#clearActive(oldest);
      if (oldest.ended.size > 0 || oldest.spilledRows > 0 || !oldest.isClosed) return;
      this.#carry(oldest);
      if (oldest.isNeeded || !this.#isReplaced(oldest)) return;
      try {
        oldest.remove();
      } catch {
        // The file is replayed at the next start, which changes nothing.
        return;
      }
      this.#segments.shift();
      this.#sealedBytes -= oldest.bytes;
    }
  }

  /** Syncs and closes the files; open calls stay in them. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#syncTimer);
    const active = this.#active;
    this.#active = undefined;
    if (active !== undefined) {
      if (this.#options.sync === "group") await active.sync().catch(() => undefined);
      this.#sealedBytes += active.bytes;
    }
    for (const segment of this.#segments) await segment.close();
    this.tidy();
  }

  #rotateIfFull(): void {
    const bytes = this.#active?.bytes ?? 0;
    if (bytes >= this.#options.segmentBytes) this.rotate();
  }

  #append(record: string): boolean {
    const segment = this.#active;
    if (segment === undefined) return false;
    const frame = this.#encoder.encode(record);
    try {
      segment.append(frame);
      this.#syncSoon();
      return true;
    } catch (error) {
      this.#fail(error);
      return false;
    }
  }

  #begin(): boolean {
    const { folder, files, clock } = this.#options;
    try {
      const createdAt = clock.monotonic();
      const segment = new Segment({ folder, number: this.#nextNumber, files, createdAt });
      this.#nextNumber += 1;
      this.#segments.push(segment);
      this.#active = segment;
      return true;
    } catch (error) {
      this.#fail(error);
      return false;
    }
  }

  #discardActive(): void {
    const segment = this.#segments.pop();
    this.#active = undefined;
    void segment?.close();
    try {
      segment?.remove();
    } catch {
      // An empty file is harmless.
    }
  }

  #seal(segment: Segment): void {
    this.#sealedBytes += segment.bytes;
    const isSynced = this.#options.sync === "group" && !segment.isSuspect;
    void (isSynced ? segment.sync() : Promise.resolve())
      .then(
        () => {
          if (!segment.isSuspect) this.#options.onSealed(segment);
        },
        (error: unknown) => this.#fail(error),
      )
      .finally(() => void segment.close());
  }

  /**
   * Stops writing to the file that failed. A failed write does not affect earlier records; after a
   * failed sync the file is suspect.
   */
  #fail(error: unknown): void {
    const active = this.#active;
    this.#active = undefined;
    if (active !== undefined) this.#seal(active);
    if (this.#failure === undefined) this.#options.onFailed(error);
    this.#failure = error ?? new Error("unknown failure");
  }

  #recover(): void {
    if (!this.#begin()) return;
    try {
      this.#active?.probe(probe);
    } catch (error) {
      this.#discardActive();
      this.#fail(error);
      return;
    }
    const suspects = this.#segments.filter(({ isSuspect }) => isSuspect);
    const entries = [
      ...suspects.flatMap(({ open, ended }) => [...open, ...ended]),
      ...this.#unwritten,
    ];
    if (!entries.every((entry) => this.write(entry))) return;
    for (const suspect of suspects) suspect.isSuspect = false;
    this.#failure = undefined;
    this.#options.onRecovered();
  }

  /** Moves long calls out of an old file, which would keep it and all later ones. */
  #carry({ open }: Segment): void {
    let carried = 0;
    for (const entry of open) {
      if (carried === carriedAtOnce || !this.write(entry)) return;
      carried += 1;
    }
  }

  #isReplaced({ successor }: Segment): boolean {
    if (successor === undefined || this.#options.sync === "none") return true;
    return successor.segment.isSafeUpTo(successor.bytes);
  }

  #clearActive(segment: Segment): void {
    if (segment.isNeeded || segment.bytes === 0) return;
    try {
      segment.clear();
    } catch (error) {
      this.#fail(error);
    }
  }

  #moveToActive(entry: CallEntry): void {
    const before = entry.segment;
    const segment = this.#active;
    if (segment === undefined) return;
    if (before !== undefined && before !== segment) {
      before.successor = { segment, bytes: segment.bytes };
    }
    this.#leaveSegment(entry);
    entry.segment = segment;
    const calls = entry.record === undefined ? segment.open : segment.ended;
    calls.add(entry);
  }

  #leaveSegment(entry: CallEntry): void {
    const { segment } = entry;
    entry.segment = undefined;
    segment?.open.delete(entry);
    segment?.ended.delete(entry);
  }

  #syncSoon(): void {
    if (this.#options.sync !== "group" || this.#syncTimer !== undefined) return;
    this.#syncTimer = setTimeout(() => {
      this.#syncTimer = undefined;
      this.#active?.sync().catch((error: unknown) => this.#fail(error));
    }, syncIntervalMs);
  }
}
