import type { UsageRecord } from "../../domain/usage/usage.ts";
import { StorageUnavailable } from "../../store/errors.ts";
import type { UsageStore } from "../../store/store.ts";
import type { RotatedFile } from "./rotated-file.ts";

export interface StoredEventsOptions {
  readonly store: UsageStore;
  readonly file: Pick<RotatedFile, "append"> | undefined;
  /** The event of a row, without line ends. */
  readonly eventOf: (record: UsageRecord) => string;
  readonly onStored: () => void;
}

/**
 * Stores rows, then appends their events to the file. Rows leave the spool only after both, so a
 * crash in between repeats events and loses none.
 */
export class StoredEvents implements UsageStore {
  readonly #options: StoredEventsOptions;
  /** Ends with the last append: files take one at a time. */
  #appending: Promise<unknown> = Promise.resolve();

  constructor(options: StoredEventsOptions) {
    this.#options = options;
  }

  async insert(records: readonly UsageRecord[]): Promise<void> {
    const { store, file, eventOf, onStored } = this.#options;
    await store.insert(records);
    onStored();
    if (file === undefined) return;
    const lines = records.map(eventOf);
    const appended = this.#appending.then(() => append(file, lines));
    this.#appending = appended.catch(() => undefined);
    await appended;
  }

  prune(...about: Parameters<UsageStore["prune"]>): Promise<number> {
    return this.#options.store.prune(...about);
  }

  erase(...about: Parameters<UsageStore["erase"]>): Promise<number> {
    return this.#options.store.erase(...about);
  }
}

async function append(file: Pick<RotatedFile, "append">, lines: readonly string[]): Promise<void> {
  try {
    await file.append(lines);
  } catch (cause) {
    // No row is at fault, so all of them are tried again.
    throw new StorageUnavailable("the events of the ledger cannot be written", { cause });
  }
}
