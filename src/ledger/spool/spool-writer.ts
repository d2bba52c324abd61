import { mkdirSync } from "node:fs";
import type {
  CallLedger,
  RecordFailure,
  OpenedCall,
  UsageRecord,
} from "../../domain/usage/usage.ts";
import type { UsageStore } from "../../store/store.ts";
import { storeRows } from "../ingest/store-rows.ts";
import { CallEntry } from "./segment.ts";
import { type Progress, Spool, type SpoolOptions } from "./spool.ts";

export interface SpoolWriterOptions extends SpoolOptions {
  /** Takes ended calls while the spool cannot be written. */
  readonly direct: Pick<UsageStore, "insert">;
}

const tickMs = 1_000;
/** The spool is nearly full above the first share, until it falls below the second. */
const nearlyFullShare = 0.8;
const roomyShare = 0.7;

/** Records the calls of this process in files of its own, from which ingest stores them. */
export class SpoolWriter implements CallLedger {
  readonly #options: SpoolWriterOptions;
  readonly #spool: Spool;
  readonly #open = new Map<string, CallEntry>();
  #isNearlyFull = false;
  #isClosed = false;
  #ticking: ReturnType<typeof setInterval> | undefined;
  #offering: Promise<void> | undefined;

  /** Throws when the folder of all spools is unusable. */
  constructor(options: SpoolWriterOptions) {
    this.#options = options;
    mkdirSync(options.root, { recursive: true, mode: 0o700 });
    this.#spool = new Spool(options);
  }

  /** Undefined until the folder could be created. */
  get folder(): string | undefined {
    return this.#spool.path;
  }

  get hasRoom(): boolean {
    return !this.#isClosed && this.#spool.isWritable && !this.#isFull;
  }

  /** Size of the files of this process. */
  get spoolBytes(): number {
    return this.#spool.bytes;
  }

  /** All later records are in the file of this number and later ones; undefined: in none. */
  beginSegment(): number | undefined {
    return this.#isClosed ? undefined : this.#spool.beginSegment();
  }

  countWaiting(progress: Progress): number {
    return this.#spool.countWaiting(progress);
  }

  open(call: OpenedCall): Promise<RecordFailure> {
    if (this.#isClosed) return Promise.resolve(new Error("the ledger is closed"));
    const entry = new CallEntry(call);
    this.#open.set(call.id, entry);
    const written = this.#spool.write(entry);
    this.#watchSpace();
    return written;
  }

  checkpoint(callId: string, { outputTokens }: { readonly outputTokens: number }): void {
    const entry = this.#open.get(callId);
    if (entry === undefined || this.#isClosed) return;
    entry.delivered = { outputTokens, at: this.#options.clock.now() };
    // A lost checkpoint costs little: the next one replaces it.
    this.#spool.checkpoint(callId, entry.delivered);
  }

  close(record: UsageRecord): Promise<RecordFailure> {
    // After shutdown, an open call is left to ingest, which records it as interrupted.
    if (this.#isClosed) return Promise.resolve(undefined);
    const entry = this.#open.get(record.id) ?? new CallEntry();
    this.#open.delete(record.id);
    entry.record = record;
    const written = this.#spool.write(entry);
    this.#watchSpace();
    return written;
  }

  start(): void {
    if (this.#isClosed) return;
    this.#ticking ??= setInterval(() => void this.maintain(), tickMs);
  }

  /** Retries failed writes, and follows ingest. Never rejects. */
  async maintain(): Promise<void> {
    this.#spool.maintain();
    this.#watchSpace();
    this.#offering ??= this.#offerUnwritten().finally(() => {
      this.#offering = undefined;
    });
    await this.#offering;
  }

  /** Open calls stay in the spool, where ingest finds them. */
  async shutDown(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    clearInterval(this.#ticking);
    await this.maintain();
    await this.#spool.close();
    const { unwritten, failure } = this.#spool;
    if (unwritten.length > 0) this.#options.on.lost(unwritten.length, failure);
  }

  whyNotReady(): string | undefined {
    const what = "usage cannot be recorded";
    if (!this.#spool.isWritable) return `${what}: the spool cannot be written`;
    return this.#isFull ? `${what}: the spool is full` : undefined;
  }

  get #isFull(): boolean {
    return this.spoolBytes >= this.#options.settings.spoolLimitBytes;
  }

  /** What the database does not take is offered again by the next `maintain`. */
  async #offerUnwritten(): Promise<void> {
    const { direct, settings } = this.#options;
    const { unwritten } = this.#spool;
    for (let start = 0; start < unwritten.length; start += settings.batchRows) {
      const entries = unwritten.slice(start, start + settings.batchRows);
      try {
        const records = entries.flatMap(({ record }) => record ?? []);
        const refused = await storeRows(records, direct);
        const ids = new Set(refused.map(({ record }) => record.id));
        const stored = entries.filter(({ record }) => record && !ids.has(record.id));
        this.#spool.storedDirectly(stored);
      } catch {
        return;
      }
    }
  }

  #watchSpace(): void {
    const bytes = this.spoolBytes;
    const { spoolLimitBytes } = this.#options.settings;
    if (!this.#isNearlyFull && bytes >= spoolLimitBytes * nearlyFullShare) {
      this.#isNearlyFull = true;
      this.#options.on.nearlyFull(bytes, spoolLimitBytes);
    } else if (this.#isNearlyFull && bytes < spoolLimitBytes * roomyShare) {
      this.#isNearlyFull = false;
      this.#options.on.hasRoomAgain();
    }
  }
}
