import type { UsageRecord } from "../domain/usage/usage.ts";
import { RefusedRows } from "../store/errors.ts";
import type { UsageStore } from "../store/store.ts";
import type { CallEntry } from "./spool/segment.ts";
import type { ReadBack } from "./read-back.ts";
import { storeRows, type PoisonRow } from "./store-rows.ts";

export interface FlusherOptions {
  readonly store: UsageStore;
  readonly batchRows: number;
  readonly flushIntervalMs: number;
  /** Ended calls, oldest first. Stored ones are removed. */
  readonly queue: Set<CallEntry>;
  /** Starts to read rows back from the spool; undefined when there are none. */
  readonly beginReadBack: () => ReadBack | undefined;
  /** Must store the row durably, or throw. */
  readonly deadLetter: (row: PoisonRow) => void;
  readonly onStored: (entries: readonly CallEntry[]) => void;
  readonly onFailed: (error: unknown) => void;
  /** Called at the first success after a failure. */
  readonly onRecovered: () => void;
}

/** Longest pause between two attempts at a database that fails. */
const longestPauseMs = 5_000;
/** After so many failures in a row, single rows are tried even if the error does not blame one. */
const persistentFailures = 3;
/** A row is at fault when it alone failed this often for an unknown reason. */
const unexplainedFailures = 3;

/**
 * Writes rows to the database in batches in the background: those in memory, alternating with those
 * read back from the spool. A failed batch is kept and retried.
 */
export class Flusher {
  readonly #options: FlusherOptions;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #passing: Promise<void> | undefined;
  #isStarted = false;
  #failures = 0;
  /** Whether the last failure was in reading the spool. */
  #isUnreadable = false;
  #lastError: unknown;
  /** Failures of single rows, by id. */
  readonly #suspicions = new Map<string, number>();
  #readBack: ReadBack | undefined;
  #readRows: readonly UsageRecord[] | undefined;

  constructor(options: FlusherOptions) {
    this.#options = options;
  }

  start(): void {
    this.#isStarted = true;
    // Rows of an earlier process are stored at once: limits and reports count only stored rows.
    if (this.#hasWork()) void this.#pass();
    else this.#schedule();
  }

  /** Called when a row has joined the queue. */
  rowAdded(): void {
    const { queue, batchRows } = this.#options;
    if (this.#timer === undefined) this.#schedule();
    else if (queue.size === batchRows && !this.#isRefused) {
      clearTimeout(this.#timer);
      this.#timer = undefined;
      this.#schedule();
    }
  }

  /** Stores all rows in memory and in the spool. Rejects as soon as the store fails. */
  async flush(): Promise<void> {
    do await this.#pass();
    while (this.#failures === 0 && this.#hasWork());
    if (this.#failures > 0) throw this.#asError();
  }

  /** Stops, after storing the rows in memory as far as the store takes them. */
  async stop(): Promise<void> {
    this.#isStarted = false;
    clearTimeout(this.#timer);
    await this.#passing;
    try {
      while (this.#options.queue.size > 0) await this.#storeQueued();
    } catch (error) {
      this.#options.onFailed(error);
    }
    this.#readBack?.abandon();
  }

  #asError(): Error {
    const what = this.#isUnreadable
      ? "the spool cannot be read"
      : "the usage store refuses the rows";
    return new Error(what, { cause: this.#lastError });
  }

  #hasWork(): boolean {
    this.#readBack ??= this.#options.beginReadBack();
    return this.#options.queue.size > 0 || this.#readBack !== undefined;
  }

  #schedule(): void {
    if (!this.#isStarted || this.#passing !== undefined || this.#timer !== undefined) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      void this.#pass();
    }, this.#pauseMs());
  }

  #pauseMs(): number {
    const { flushIntervalMs, batchRows, queue } = this.#options;
    const hasBatch = queue.size >= batchRows;
    if (this.#isRefused || (this.#failures > 0 && !hasBatch)) {
      return Math.min(longestPauseMs, flushIntervalMs * 2 ** Math.min(this.#failures, 10));
    }
    return hasBatch || this.#readBack !== undefined ? 0 : flushIntervalMs;
  }

  /** Whether the store failed last; an unreadable spool must not hold up rows in memory. */
  get #isRefused(): boolean {
    return this.#failures > 0 && !this.#isUnreadable;
  }

  /** Stores one batch of each kind. Never rejects. */
  #pass(): Promise<void> {
    this.#passing ??= this.#storeBoth().finally(() => {
      this.#passing = undefined;
      if (this.#hasWork()) this.#schedule();
    });
    return this.#passing;
  }

  async #storeBoth(): Promise<void> {
    this.#isUnreadable = false;
    try {
      await this.#storeQueued();
      await this.#storeReadBack();
    } catch (error) {
      this.#failures += 1;
      this.#lastError = error;
      this.#options.onFailed(error);
      return;
    }
    if (this.#failures > 0) this.#options.onRecovered();
    this.#failures = 0;
  }

  async #storeQueued(): Promise<void> {
    const { queue, batchRows, onStored } = this.#options;
    const entries: CallEntry[] = [];
    const rows: UsageRecord[] = [];
    for (const entry of queue) {
      if (rows.length === batchRows) break;
      entries.push(entry);
      if (entry.record !== undefined) rows.push(entry.record);
    }
    if (rows.length > 0) await this.#store(rows);
    for (const entry of entries) queue.delete(entry);
    onStored(entries);
  }

  async #storeReadBack(): Promise<void> {
    this.#readBack ??= this.#options.beginReadBack();
    if (this.#readBack === undefined) return;
    this.#readRows ??= this.#readNext(this.#readBack);
    if (this.#readRows === undefined) {
      const finished = this.#readBack;
      this.#readBack = undefined;
      finished.finish();
      return;
    }
    if (this.#readRows.length > 0) await this.#store(this.#readRows);
    this.#readRows = undefined;
  }

  #readNext(readBack: ReadBack): readonly UsageRecord[] | undefined {
    try {
      return readBack.next(this.#options.batchRows);
    } catch (error) {
      this.#isUnreadable = true;
      throw error;
    }
  }

  async #store(rows: readonly UsageRecord[]): Promise<void> {
    const isPersistent = this.#failures >= persistentFailures;
    const poison = await storeRows(rows, this.#options.store, isPersistent);
    const unproven = poison.filter((row) => !this.#isAtFault(row));
    if (unproven[0] !== undefined) throw unproven[0].error;
    for (const row of poison) this.#options.deadLetter(row);
    this.#suspicions.clear();
  }

  /** A row that failed once while others got through may succeed next time. */
  #isAtFault({ record, error }: PoisonRow): boolean {
    if (error instanceof RefusedRows) return true;
    const failures = (this.#suspicions.get(record.id) ?? 0) + 1;
    this.#suspicions.set(record.id, failures);
    return failures >= unexplainedFailures;
  }
}
