import type { UsageRecord } from "../../domain/usage/usage.ts";
import { RefusedRows, StorageUnavailable } from "../../store/errors.ts";
import type { UsageStore } from "../../store/store.ts";

/** A row that the database rejects while it accepts others. */
export interface PoisonRow {
  readonly record: UsageRecord;
  readonly error: unknown;
}

/**
 * Stores rows, and finds by halving those that cannot be. An error that blames no row is a row's only
 * if others were stored. Throws when the batch must be retried.
 */
export async function storeRows(
  rows: readonly UsageRecord[],
  store: Pick<UsageStore, "insert">,
): Promise<readonly PoisonRow[]> {
  const poison = await isolate(rows, store);
  const unexplained = poison.find(({ error }) => !(error instanceof RefusedRows));
  if (unexplained !== undefined && poison.length === rows.length) throw unexplained.error;
  return poison;
}

async function isolate(
  rows: readonly UsageRecord[],
  store: Pick<UsageStore, "insert">,
): Promise<readonly PoisonRow[]> {
  try {
    await store.insert(rows);
    return [];
  } catch (error) {
    if (error instanceof StorageUnavailable) throw error;
    const [record, second] = rows;
    if (record !== undefined && second === undefined) return [{ record, error }];
  }
  const middle = Math.ceil(rows.length / 2);
  const first = await isolate(rows.slice(0, middle), store);
  return [...first, ...(await isolate(rows.slice(middle), store))];
}
