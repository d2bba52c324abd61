import type { UsageRecord } from "../../../domain/usage/usage.ts";
import { RefusedRows } from "../../errors.ts";
import type { SqlConnection } from "../../repositories/connection.ts";
import { BatchSums } from "../../repositories/usage/batch-sums.ts";
import type { Queries } from "../../repositories/tables.ts";
import type { DroppedRows, UsageRetention, UsageStore } from "../../store.ts";
import { isFaultOfData, isLocked } from "../connection/postgres-trouble.ts";
import { insertCalls, storable } from "./insert-calls.ts";
import { findLateRows } from "./late-rows.ts";
import { eraseUsage } from "./usage-erase.ts";
import { foldableUntil, foldSome, readFolds } from "./usage-fold.ts";
import { findGroups } from "./usage-groups.ts";
import { addPartitions } from "./usage-partitions.ts";
import { pruneDay, pruneRows } from "./usage-prune.ts";
import { addSums } from "./usage-sum-rows.ts";

/** The ledger in PostgreSQL, with the sums for reports. */
export class PostgresUsageStore implements UsageStore {
  readonly #connection: Pick<SqlConnection, "change">;
  readonly #onDropped: (dropped: DroppedRows) => void;

  /** Changes of the connection must run one at a time. */
  constructor(
    connection: Pick<SqlConnection, "change">,
    onDropped: (dropped: DroppedRows) => void = () => undefined,
  ) {
    this.#connection = connection;
    this.#onDropped = onDropped;
  }

  async insert(records: readonly UsageRecord[]): Promise<void> {
    if (records.length === 0) return;
    try {
      const dropped = await this.#connection.change((queries) => insertBatch(queries, records));
      if (dropped.ofErasedAccounts + dropped.tooOld > 0) this.#onDropped(dropped);
    } catch (error) {
      if (!isFaultOfData(error)) throw error;
      throw new RefusedRows("the database rejects these calls", { cause: error });
    }
  }

  async prune(limits: UsageRetention, limit: number): Promise<number> {
    const dropped = await this.#pruneDay(limits);
    if (dropped > 0) return dropped;
    return this.#connection.change((queries) => pruneRows(queries, limits, limit));
  }

  /** A day that somebody reads is left for the next run, which must not keep it from the rest. */
  async #pruneDay(limits: UsageRetention): Promise<number> {
    try {
      return await this.#connection.change((queries) => pruneDay(queries, limits));
    } catch (error) {
      if (isLocked(error)) return 0;
      throw error;
    }
  }

  erase(accountId: string, limit: number): Promise<number> {
    return this.#connection.change((queries) => eraseUsage(queries, accountId, limit));
  }
}

/** A few statements for all of a batch, because each is a round trip. */
async function insertBatch(
  queries: Queries,
  records: readonly UsageRecord[],
): Promise<DroppedRows> {
  const { inTime, dropped } = await findLateRows(queries, records.map(storable));
  await addPartitions(queries, inTime);
  const inserted = await insertCalls(queries, inTime);
  if (inserted.length === 0) return dropped;
  const groups = await findGroups(queries, inserted);
  const positions = await readFolds(queries);
  const sums = new BatchSums();
  let newestAt = 0;
  for (const record of inserted) {
    sums.add(record, groups.of(record), positions);
    newestAt = Math.max(newestAt, record.startedAt);
  }
  await addSums(queries, sums.buckets);
  await foldSome(queries, foldableUntil(newestAt));
  return dropped;
}
