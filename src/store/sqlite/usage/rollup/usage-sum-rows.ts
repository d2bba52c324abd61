import type { Database } from "bun:sqlite";
import { compactLatencies } from "../../../../domain/usage/latency-histogram.ts";
import type { SumBucket } from "../../../repositories/usage/batch-sums.ts";
import type { ColumnValue } from "../../../repositories/usage/usage-row.ts";
import { details, stepTables } from "../../../repositories/usage/usage-steps.ts";

/** Latencies of one batch longer than this are compacted before they are written. */
const longInBatch = 64;
/**
 * Every batch appends to a row and rewrites all of it, so without a bound a busy key's minute would
 * cost more with each second. A compact text rarely has half as many characters.
 */
const longInRow = 2_048;

/** Adds the sums of a batch to the stored ones. Needs a transaction. */
export function addSums(database: Database, buckets: Iterable<SumBucket>): void {
  for (const { step, detail, at, sums } of buckets) {
    const upsert = database.query<{ length: number }, ColumnValue[]>(upsertInto(stepTables[step]));
    for (const [groupId, sum] of sums) {
      const row = upsert.get(
        details[detail],
        at,
        groupId,
        sum.calls,
        sum.failedCalls,
        sum.abandonedCalls,
        sum.inputTokens,
        sum.outputTokens,
        sum.cachedInputTokens,
        sum.estimatedTokens,
        shortened(sum.durations),
        shortened(sum.firstEvents),
        sum.cacheWriteTokens,
      );
      if ((row?.length ?? 0) <= longInRow) continue;
      const groups = { since: groupId, until: groupId + 1 };
      compactSums(database, { step, detail, at, groups, length: longInRow });
    }
  }
}

function shortened(latencies: string): string {
  return latencies.length > longInBatch ? compactLatencies(latencies) : latencies;
}

function upsertInto(table: string): string {
  return `INSERT INTO ${table} VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ${addToOld}
    RETURNING octet_length(durations) + octet_length(first_events) AS length`;
}

/** The conflict clause for sums that may exist already. */
export const addToOld = `
    ON CONFLICT DO UPDATE SET calls = calls + excluded.calls,
      failed_calls = failed_calls + excluded.failed_calls,
      abandoned_calls = abandoned_calls + excluded.abandoned_calls,
      input_tokens = input_tokens + excluded.input_tokens,
      output_tokens = output_tokens + excluded.output_tokens,
      cached_input_tokens = cached_input_tokens + excluded.cached_input_tokens,
      estimated_tokens = estimated_tokens + excluded.estimated_tokens,
      durations = durations || excluded.durations,
      first_events = first_events || excluded.first_events,
      cache_write_tokens = cache_write_tokens + excluded.cache_write_tokens`;

interface LongSums extends Pick<SumBucket, "step" | "detail" | "at"> {
  readonly groups: { readonly since: number; readonly until: number };
  /** Length in characters. */
  readonly length: number;
}

interface LongRow {
  readonly group_id: number;
  readonly durations: string;
  readonly first_events: string;
}

/** Compacts latencies of groups that are longer than this. Needs a transaction. */
export function compactSums(
  database: Database,
  { step, detail, at, groups, length }: LongSums,
): void {
  const table = stepTables[step];
  const rows = database
    .query<LongRow, ColumnValue[]>(
      `SELECT group_id, durations, first_events FROM ${table}
       WHERE detail = ? AND at = ? AND group_id >= ? AND group_id < ?
         AND octet_length(durations) + octet_length(first_events) > ?`,
    )
    .all(details[detail], at, groups.since, groups.until, length);
  const update = database.query<unknown, ColumnValue[]>(
    `UPDATE ${table} SET durations = ?, first_events = ?
     WHERE detail = ? AND at = ? AND group_id = ?`,
  );
  for (const row of rows) {
    const durations = compactLatencies(row.durations);
    const firstEvents = compactLatencies(row.first_events);
    update.run(durations, firstEvents, details[detail], at, row.group_id);
  }
}
