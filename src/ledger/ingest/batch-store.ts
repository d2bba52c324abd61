import type { UsageRecord } from "../../domain/usage/usage.ts";
import { RefusedRows, StorageUnavailable } from "../../store/errors.ts";
import type { UsageStore } from "../../store/store.ts";

/**
 * After this many failures in a row, single rows are tried even if the error does not blame one.
 */
const persistentFailures = 3;
/** A row is at fault when it alone failed this often for an unknown reason. */
const unexplainedFailures = 3;

/** Stores batches. Rows that the database rejects permanently become dead letters. */
export class BatchStore {
  readonly #store: UsageStore;
  /** Must store the row durably, or throw. */
  readonly #deadLetter: (row: PoisonRow) => void;
  /** Failures of single rows, by id. */
  readonly #suspicions = new Map<string, number>();
  #failures = 0;

  constructor(store: UsageStore, deadLetter: (row: PoisonRow) => void) {
    this.#store = store;
    this.#deadLetter = deadLetter;
  }

  /** Failures in a row. */
  get failures(): number {
    return this.#failures;
  }

  /** Throws when the batch must be retried. */
  async store(rows: readonly UsageRecord[]): Promise<void> {
    try {
      const isPersistent = this.#failures >= persistentFailures;
      const poison = await storeRows(rows, this.#store, isPersistent);
      const unproven = poison.filter((row) => !this.#isAtFault(row));
      if (unproven[0] !== undefined) throw unproven[0].error;
      for (const row of poison) this.#deadLetter(row);
    } catch (error) {
      this.#failures += 1;
      throw error;
    }
    this.#suspicions.clear();
    this.#failures = 0;
  }

  /** A row that failed once while others were stored may succeed next time. */
  #isAtFault({ record, error }: PoisonRow): boolean {
    if (error instanceof RefusedRows) return true;
    const failures = (this.#suspicions.get(record.id) ?? 0) + 1;
    this.#suspicions.set(record.id, failures);
    return failures >= unexplainedFailures;
  }
}

/** A row that the database rejects while it accepts others. */
export interface PoisonRow {
  readonly record: UsageRecord;
  readonly error: unknown;
}

/**
 * Stores rows, and finds rejected ones by halving. Other errors are thrown at once, unless
 * `isPersistent`: then the batch is halved too, and a row is blamed only if others were stored.
 * Throws when the batch must be retried.
 */
export async function storeRows(
  rows: readonly UsageRecord[],
  store: UsageStore,
  isPersistent: boolean,
): Promise<readonly PoisonRow[]> {
  const poison = await isolate(rows, store, isPersistent);
  const unexplained = poison.find(({ error }) => !(error instanceof RefusedRows));
  if (unexplained !== undefined && poison.length === rows.length) throw unexplained.error;
  return poison;
}

async function isolate(
  rows: readonly UsageRecord[],
  store: UsageStore,
  isPersistent: boolean,
): Promise<readonly PoisonRow[]> {
  try {
    await store.insert(rows);
    return [];
  } catch (error) {
    if (error instanceof StorageUnavailable) throw error;
    if (!(error instanceof RefusedRows) && !isPersistent) throw error;
    const [record] = rows;
    if (rows.length === 1 && record !== undefined) return [{ record, error }];
  }
  const middle = Math.ceil(rows.length / 2);
  const first = await isolate(rows.slice(0, middle), store, isPersistent);
  return [...first, ...(await isolate(rows.slice(middle), store, isPersistent))];
}
