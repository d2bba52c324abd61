import { type Database, SQLiteError } from "bun:sqlite";
import type { UsageRecord } from "../../../domain/usage/usage.ts";
import { RefusedRows } from "../../errors.ts";
import type { DroppedRows, UsageRetention, UsageStore } from "../../store.ts";
import type { SqliteConnection } from "../connection/connection.ts";
import { LateRows } from "./rollup/late-rows.ts";
import { eraseUsage } from "./rollup/usage-erase.ts";
import { foldableUntil, foldAfterBatch } from "./rollup/usage-fold.ts";
import { readFolds } from "./rollup/usage-folds.ts";
import { UsageGroups } from "./rollup/usage-groups.ts";
import { pruneUsage } from "./rollup/usage-prune.ts";
import { type ColumnValue, toValues, usageColumns } from "../../repositories/usage/usage-row.ts";
import { addSums } from "./rollup/usage-sum-rows.ts";
import { BatchSums } from "../../repositories/usage/batch-sums.ts";

const insertCall = `
  INSERT INTO usage (${usageColumns.join(", ")}) VALUES (${usageColumns.map(() => "?").join(", ")})
  ON CONFLICT (id) DO NOTHING`;

/** The ledger in SQLite, with the sums for reports. */
export class SqliteUsageStore implements UsageStore {
  readonly #connection: Pick<SqliteConnection, "transact">;
  readonly #onDropped: (dropped: DroppedRows) => void;
  readonly #groups = new UsageGroups();

  constructor(
    connection: Pick<SqliteConnection, "transact">,
    onDropped: (dropped: DroppedRows) => void = () => undefined,
  ) {
    this.#connection = connection;
    this.#onDropped = onDropped;
  }

  async insert(records: readonly UsageRecord[]): Promise<void> {
    if (records.length === 0) return;
    try {
      const dropped = await this.#change((database) => this.#insert(database, records));
      if (dropped.ofErasedAccounts + dropped.tooOld > 0) this.#onDropped(dropped);
    } catch (error) {
      this.#groups.forget();
      throw isFaultOfData(error) ? refusal(error) : error;
    }
  }

  prune(limits: UsageRetention, limit: number): Promise<number> {
    return this.#change((database) => pruneUsage(database, limits, limit));
  }

  erase(accountId: string, limit: number): Promise<number> {
    return this.#change((database) => {
      this.#groups.forget();
      return eraseUsage(database, accountId, limit);
    });
  }

  #change<Result>(step: (database: Database) => Result): Promise<Result> {
    return this.#connection.transact((database) => new Promise((done) => done(step(database))));
  }

  #insert(database: Database, records: readonly UsageRecord[]): DroppedRows {
    const insert = database.query<unknown, ColumnValue[]>(insertCall);
    const sums = new BatchSums();
    const positions = readFolds(database);
    const late = new LateRows(database);
    let newestAt = 0;
    this.#groups.follow(database);
    for (const record of records) {
      if (handOver(() => late.isToBeDropped(record))) continue;
      const { changes } = handOver(() => insert.run(...toValues(record)));
      if (changes === 0) continue;
      sums.add(record, this.#groups.idsOf(database, record), positions);
      newestAt = Math.max(newestAt, record.startedAt);
    }
    addSums(database, sums.buckets);
    foldAfterBatch(database, foldableUntil(newestAt), records.length);
    return late.dropped;
  }
}

/** Values that cannot be bound are a fault of the data, like those that SQLite refuses. */
function handOver<Result>(step: () => Result): Result {
  try {
    return step();
  } catch (error) {
    throw error instanceof SQLiteError ? error : refusal(error);
  }
}

/**
 * SQLite's primary result codes TOOBIG, CONSTRAINT and MISMATCH, https://sqlite.org/rescode.html.
 */
const faultsOfData: readonly number[] = [18, 19, 20];

function isFaultOfData(error: unknown): boolean {
  // The lower byte of an extended code is the primary one.
  return error instanceof SQLiteError && faultsOfData.includes(error.errno & 0xff);
}

function refusal(cause: unknown): RefusedRows {
  return new RefusedRows("the database rejects these calls", { cause });
}
