import type { UsageRecord } from "../../domain/usage/usage.ts";
import { StorageUnavailable } from "../../store/errors.ts";
import type { UsageStore } from "../../store/store.ts";

/** Takes events, one JSON text each. What it has taken survives a crash. */
export interface EventSink {
  append(lines: readonly string[]): Promise<void>;
}

export interface StoredEventsOptions {
  readonly store: UsageStore;
  readonly sinks: readonly EventSink[];
  /** The event of a row, without line ends. */
  readonly eventOf: (record: UsageRecord) => string;
  readonly onAppended: () => void;
}

/**
 * Stores rows, then makes their events. Rows leave the spool only after both, so a crash in between
 * repeats events and loses none.
 */
export class StoredEvents implements UsageStore {
  readonly #options: StoredEventsOptions;
  /** Ends with the last append: files take one at a time. */
  #appending: Promise<unknown> = Promise.resolve();

  constructor(options: StoredEventsOptions) {
    this.#options = options;
  }

  async insert(records: readonly UsageRecord[]): Promise<void> {
    const { store, eventOf, onAppended } = this.#options;
    await store.insert(records);
    const lines = records.map(eventOf);
    const appended = this.#appending.then(() => this.#append(lines));
    this.#appending = appended.catch(() => undefined);
    await appended;
    onAppended();
  }

  prune(...about: Parameters<UsageStore["prune"]>): Promise<number> {
    return this.#options.store.prune(...about);
  }

  erase(...about: Parameters<UsageStore["erase"]>): Promise<number> {
    return this.#options.store.erase(...about);
  }

  async #append(lines: readonly string[]): Promise<void> {
    try {
      for (const sink of this.#options.sinks) await sink.append(lines);
    } catch (cause) {
      // No row is at fault, so all of them are tried again.
      throw new StorageUnavailable("the events of the ledger cannot be written", { cause });
    }
  }
}
