import type { UsageRecord } from "../../domain/usage/usage.ts";
import { RefusedRows, StorageUnavailable } from "../../store/errors.ts";
import type { UsageStore } from "../../store/store.ts";

/** A row that the database rejects while it accepts others. */
export interface PoisonRow {
  readonly record: UsageRecord;
  readonly error: unknown;
}

/** A row alone is at fault after as many failures for an unknown reason. */
const triesOfOne = 6;

/**
 * Stores rows, and finds rejected ones by halving. Other errors are thrown at once, unless
 * `isPersistent`: then the batch is halved too, and a row is blamed only if others were stored.
 * Throws when the batch must be retried.
 */
export async function storeRows(
  rows: readonly UsageRecord[],
  store: Pick<UsageStore, "insert">,
  isPersistent: boolean,
): Promise<readonly PoisonRow[]> {
  const poison = await isolate(rows, store, isPersistent);
  const unexplained = poison.find(({ error }) => !(error instanceof RefusedRows));
  if (unexplained !== undefined && poison.length === rows.length) throw unexplained.error;
  return poison;
}

async function isolate(
  rows: readonly UsageRecord[],
  store: Pick<UsageStore, "insert">,
  isPersistent: boolean,
): Promise<readonly PoisonRow[]> {
  for (let tries = 1; ; tries += 1) {
    try {
      await store.insert(rows);
      return [];
    } catch (error) {
      const isExplained = error instanceof RefusedRows;
      if (error instanceof StorageUnavailable || !(isExplained || isPersistent)) throw error;
      const [record, second] = rows;
      if (record === undefined || second !== undefined) break;
      if (isExplained || tries === triesOfOne) return [{ record, error }];
    }
  }
  const middle = Math.ceil(rows.length / 2);
  const first = await isolate(rows.slice(0, middle), store, isPersistent);
  return [...first, ...(await isolate(rows.slice(middle), store, isPersistent))];
}
