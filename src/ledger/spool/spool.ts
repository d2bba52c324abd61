import type { Clock } from "../../domain/clock.ts";
import type { CallEntry } from "./segment.ts";
import { FrameEncoder } from "./frame.ts";
import { Segment } from "./segment.ts";
import type { SpoolFiles } from "./spool-files.ts";

export interface SpoolOptions {
  readonly folder: string;
  readonly files: SpoolFiles;
  readonly clock: Clock;
  /** Of the first file; all files before it are somebody else's. */
  readonly firstNumber: number;
  readonly segmentBytes: number;
  readonly sync: "none" | "group";
  /** Told once, when it can no more be written. */
  readonly onFailed: (error: unknown) => void;
  readonly onRecovered: () => void;
  /** A file is whole and, where that is asked for, on the disk. */
  readonly onSealed: (segment: Segment) => void;
}

/** The longest that a power cut may cost where writes are forced to the disk. */
const syncIntervalMs = 20;
/** Files are replaced after this time, so that rows long stored are not replayed. */
const segmentLifetimeMs = 600_000;
/** Calls still open that are moved out of an old file in one step. */
const carriedAtOnce = 500;
/** A spool that fills its disk begins anew only when there is this much room. */
const probe = new Uint8Array(64 * 1024);

/**
 * Writes what is known of calls to files, oldest first. A file is removed when the database has all
 * of its calls and every file before it is gone: what a later file says of a call corrects an
 * earlier one, so the later must not go first.
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

  /** Why nothing can be written. */
  get failure(): unknown {
    return this.#failure;
  }

  get unwrittenRows(): number {
    return this.#unwritten.size;
  }

  /** The file that is written now; undefined while nothing can be written. */
  get active(): Segment | undefined {
    return this.#active;
  }

  /** A file with ended calls that are to be read back. */
  get spilled(): Segment | undefined {
    return this.#segments.find(({ spilledRows }) => spilledRows > 0);
  }

  /** Writes all of a call. False when it cannot be written; an ended call is then kept. */
  write(entry: CallEntry): boolean {
    // In one file: the one that the call is then said to be in.
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

  /** Writes what adds to a call that was written before. */
  append(record: string): boolean {
    this.#rotateIfFull();
    return this.#append(record);
  }

  /** The database has the call, or will be told of it by who reads the spool back. */
  forget(entry: CallEntry): void {
    this.#unwritten.delete(entry);
    this.#leaveSegment(entry);
  }

  /** Goes on in a new file. */
  rotate(): void {
    const before = this.#active;
    this.#active = undefined;
    if (before !== undefined) this.#seal(before);
    this.#begin();
  }

  /** To be called now and then: replaces an old file, and tries again what could not be written. */
  maintain(): void {
    if (this.#active === undefined && !this.#isClosed) this.#recover();
    const active = this.#active;
    if (active !== undefined && active.bytes > 0) {
      const ageMs = this.#options.clock.monotonic() - active.createdAt;
      if (ageMs > segmentLifetimeMs) this.rotate();
    }
    this.tidy();
  }

  /** Removes files that are done with. */
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
        // What stays is replayed at the next start, which changes nothing.
        return;
      }
      this.#segments.shift();
      this.#sealedBytes -= oldest.bytes;
    }
  }

  /** Brings what was written to the disk and ends; calls that go on stay in the files. */
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
      // An empty file does no harm.
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
   * Nothing more goes into the file that failed. A write that failed leaves alone what was written
   * before; after a sync that failed the file is suspect.
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

  /** Long calls would keep an old file, and with it all files after it. */
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
