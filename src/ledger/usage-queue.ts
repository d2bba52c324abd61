import type { UsageRecord } from "../domain/usage.ts";
import type { UsageStore } from "../storage/store.ts";

export interface UsageQueueOptions {
  readonly store: UsageStore;
  readonly batchRows: number;
  readonly flushIntervalMs: number;
  readonly queueRows: number;
  readonly onWriteFailed: (rows: number, error: unknown) => void;
}

/** Longest pause between two tries at a database that refuses. */
const longestPauseMs = 5_000;

/**
 * Takes the rows of finished calls and stores them in batches, off the way of a call. A batch that
 * the store refuses stays in front of the queue and is tried again. The durable spool that will
 * stand before this queue takes the same rows.
 */
export class UsageQueue {
  readonly #options: UsageQueueOptions;
  #rows: UsageRecord[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;
  #flushing: Promise<void> | undefined;
  #failures = 0;

  constructor(options: UsageQueueOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#rows.length;
  }

  /** While true, no call should be admitted: its usage might be lost. */
  get isFull(): boolean {
    return this.#rows.length >= this.#options.queueRows;
  }

  record(row: UsageRecord): void {
    this.#rows.push(row);
    this.#schedule();
  }

  /** Stores what is queued now. Rejects when the store still refuses. */
  async flush(): Promise<void> {
    while (this.#rows.length > 0) {
      const failures = this.#failures;
      await this.#flushOnce();
      if (this.#failures > failures) throw new Error("the usage store refuses the rows");
    }
  }

  /** Stores the rest. Rows that the store refuses to the last are reported and given up. */
  async close(): Promise<void> {
    await this.flush().catch(() => undefined);
    clearTimeout(this.#timer);
  }

  #schedule(): void {
    if (this.#timer !== undefined) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      void this.#flushOnce();
    }, this.#pauseMs());
  }

  #pauseMs(): number {
    const { flushIntervalMs, batchRows } = this.#options;
    if (this.#failures === 0) return this.#rows.length < batchRows ? flushIntervalMs : 0;
    return Math.min(longestPauseMs, flushIntervalMs * 2 ** Math.min(this.#failures, 10));
  }

  #flushOnce(): Promise<void> {
    this.#flushing ??= this.#storeBatch().finally(() => {
      this.#flushing = undefined;
      if (this.#rows.length > 0) this.#schedule();
    });
    return this.#flushing;
  }

  async #storeBatch(): Promise<void> {
    const batch = this.#rows.slice(0, this.#options.batchRows);
    try {
      await this.#options.store.insert(batch);
      this.#rows = this.#rows.slice(batch.length);
      this.#failures = 0;
    } catch (error) {
      this.#failures += 1;
      this.#options.onWriteFailed(this.#rows.length, error);
    }
  }
}
