import { type RawBuilder, sql } from "kysely";
import { compactLatencies } from "../../../domain/usage/latency-histogram.ts";
import type { UsageStep } from "../../../domain/usage/usage-report.ts";
import type { Queries } from "../../repositories/tables.ts";
import type { SumBucket } from "../../repositories/usage/batch-sums.ts";
import { details, stepTables } from "../../repositories/usage/usage-steps.ts";
import type { UsageSum } from "../../repositories/usage/usage-sum.ts";
import { rowsOf, type SetRow } from "./row-set.ts";

/** As in SQLite: appending makes latencies grow, so longer ones are compacted. */
const longInRow = 2_048;
const longInBatch = 64;

export const countColumns = [
  "calls",
  "failed_calls",
  "abandoned_calls",
  "input_tokens",
  "output_tokens",
  "cached_input_tokens",
  "estimated_tokens",
  "cache_write_tokens",
] as const;
export const latencyColumns = ["durations", "first_events"] as const;
const columns = ["detail", "at", "group_id", ...countColumns, ...latencyColumns];

/** Adds the sums of a batch to the stored ones. */
export async function addSums(queries: Queries, buckets: Iterable<SumBucket>): Promise<void> {
  const byStep = Map.groupBy(buckets, ({ step }) => step);
  for (const [step, ofStep] of byStep) {
    const rows = ofStep.flatMap(({ detail, at, sums }) =>
      [...sums].map(([groupId, sum]) => toRow({ detail: details[detail], at, groupId }, sum)),
    );
    const list = sql.raw(columns.join(", "));
    await addRows(queries, step, sql`select ${list} from ${rowsOf(stepTables[step], rows)}`);
  }
}

interface SumPlace {
  readonly detail: number;
  readonly at: number;
  readonly groupId: number;
}

function toRow({ detail, at, groupId }: SumPlace, sum: UsageSum): SetRow {
  return {
    detail,
    at,
    group_id: groupId,
    calls: sum.calls,
    failed_calls: sum.failedCalls,
    abandoned_calls: sum.abandonedCalls,
    input_tokens: sum.inputTokens,
    output_tokens: sum.outputTokens,
    cached_input_tokens: sum.cachedInputTokens,
    estimated_tokens: sum.estimatedTokens,
    cache_write_tokens: sum.cacheWriteTokens,
    durations: shortened(sum.durations),
    first_events: shortened(sum.firstEvents),
  };
}

function shortened(latencies: string): string {
  return latencies.length > longInBatch ? compactLatencies(latencies) : latencies;
}

interface WrittenRow extends SumPlace {
  readonly length: number;
}

/** Adds selected sums, in the order of `columns`, to the stored ones. */
export async function addRows(
  queries: Queries,
  step: UsageStep,
  selected: RawBuilder<unknown>,
): Promise<void> {
  const table = sql.table(stepTables[step]);
  const { rows } = await sql<WrittenRow>`
    insert into ${table} as old (${sql.raw(columns.join(", "))}) ${selected}
    on conflict (detail, at, group_id) do update set ${sql.raw(additions)}
    returning detail, at, group_id,
      octet_length(durations) + octet_length(first_events) as length`.execute(queries);
  const long = rows.filter(({ length }) => length > longInRow);
  if (long.length > 0) await compactRows(queries, step, long);
}

const additions = [
  ...countColumns.map((column) => `${column} = old.${column} + excluded.${column}`),
  ...latencyColumns.map((column) => `${column} = old.${column} || excluded.${column}`),
].join(", ");

interface LongRow extends SumPlace {
  readonly durations: string;
  readonly firstEvents: string;
}

async function compactRows(
  queries: Queries,
  step: UsageStep,
  places: readonly SumPlace[],
): Promise<void> {
  const table = stepTables[step];
  const wanted = places.map(({ detail, at, groupId }) => ({ detail, at, group_id: groupId }));
  const long = await sql<LongRow>`
    select detail, at, group_id, stored.durations, stored.first_events
    from (select detail, at, group_id from ${rowsOf(table, wanted)}) as wanted
    join ${sql.table(table)} as stored using (detail, at, group_id)`.execute(queries);
  const compact = long.rows.map((row) => ({
    detail: row.detail,
    at: row.at,
    group_id: row.groupId,
    durations: compactLatencies(row.durations),
    first_events: compactLatencies(row.firstEvents),
  }));
  await sql`
    update ${sql.table(table)} as stored
    set durations = compact.durations, first_events = compact.first_events
    from ${rowsOf(table, compact)} as compact
    where stored.detail = compact.detail and stored.at = compact.at
      and stored.group_id = compact.group_id`.execute(queries);
}
