import { sql } from "kysely";
import { compactLatencies, encodeLatency } from "../../../domain/usage/latency-histogram.ts";
import type { UsageRecord } from "../../../domain/usage/usage.ts";
import { withRawRows } from "../session.ts";
import type { Queries, UsageSum } from "../tables.ts";
import { type ColumnTypes, namesOf, rowsOf } from "./row-set.ts";
import { type Grain, grains, stepStart } from "./usage-range.ts";

export type CountedCall = Pick<
  UsageRecord,
  | "outcome"
  | "inputTokens"
  | "outputTokens"
  | "cachedInputTokens"
  | "cacheWriteTokens"
  | "usageSource"
  | "durationMs"
  | "firstEventMs"
>;

export function sumOfCall(call: CountedCall): UsageSum {
  const { outcome, inputTokens, outputTokens, firstEventMs } = call;
  return {
    calls: 1,
    failedCalls: outcome === "completed" ? 0 : 1,
    abandonedCalls: outcome === "abandoned" ? 1 : 0,
    inputTokens,
    outputTokens,
    cachedInputTokens: call.cachedInputTokens,
    cacheWriteTokens: call.cacheWriteTokens ?? 0,
    estimatedTokens: call.usageSource === "upstream" ? 0 : inputTokens + outputTokens,
    durations: outcome === "completed" ? encodeLatency(call.durationMs) : "",
    firstEvents: firstEventMs === undefined ? "" : encodeLatency(firstEventMs),
  };
}

export function addSum(sum: UsageSum, other: Readonly<UsageSum>): void {
  sum.calls += other.calls;
  sum.failedCalls += other.failedCalls;
  sum.abandonedCalls += other.abandonedCalls;
  sum.inputTokens += other.inputTokens;
  sum.outputTokens += other.outputTokens;
  sum.cachedInputTokens += other.cachedInputTokens;
  sum.cacheWriteTokens += other.cacheWriteTokens;
  sum.estimatedTokens += other.estimatedTokens;
  sum.durations += other.durations;
  sum.firstEvents += other.firstEvents;
}

/**
 * Adds calls that were just stored to the sums of their hours and days. The hours before
 * `hoursSince` were removed; their calls count in the day alone. Needs a transaction that no other
 * one of usage runs beside, because latencies are read and then written.
 */
export async function addToSums(
  queries: Queries,
  records: readonly UsageRecord[],
  hoursSince: number,
): Promise<void> {
  const groups = await findGroups(queries, records);
  const sums = new Map<string, PlacedSum>();
  for (const [index, record] of records.entries()) {
    const groupId = groups[index];
    if (groupId === undefined) throw new Error("a group of usage has no id");
    const added = sumOfCall(record);
    for (const grain of grains) {
      if (grain === "hour" && record.startedAt < hoursSince) continue;
      const at = stepStart(record.startedAt, grain);
      const name = `${grain} ${at} ${groupId}`;
      const known = sums.get(name);
      if (known === undefined) sums.set(name, { grain, at, groupId, sum: { ...added } });
      else addSum(known.sum, added);
    }
  }
  await writeSums(queries, [...sums.values()]);
}

/** The columns of `usage_groups` that tell its rows apart. */
const groupColumns = {
  account_id: "text",
  key_id: "text",
  model: "text",
  target: "text",
  capacity_class: "text",
  outcome: "text",
  status: "bigint",
  code: "text",
  application_id: "text",
  environment: "text",
} as const satisfies ColumnTypes;

/** Values in the order of `groupColumns`; absent texts are empty. */
function groupOf(record: UsageRecord): readonly (string | number)[] {
  return [
    record.accountId,
    record.keyId,
    record.model,
    record.target ?? "",
    record.capacityClass,
    record.outcome,
    record.status,
    record.code ?? "",
    record.applicationId,
    record.environment,
  ];
}

/** Finds or creates the groups of calls; returns their ids in the order of the calls. */
async function findGroups(
  queries: Queries,
  records: readonly UsageRecord[],
): Promise<readonly (number | undefined)[]> {
  const groups = new Map<string, readonly (string | number)[]>();
  const names = records.map((record) => {
    const values = groupOf(record);
    const name = JSON.stringify(values);
    groups.set(name, values);
    return name;
  });
  const ids = new Map<string, number>();
  await readIds(queries, groups, ids);
  const missing = new Map([...groups].filter(([name]) => !ids.has(name)));
  if (missing.size > 0) {
    const columns = namesOf(groupColumns);
    const rows = rowsOf(groupColumns, [...missing.values()]);
    await sql`insert into usage_groups (${columns}) select ${columns} from ${rows}`.execute(
      queries,
    );
    await readIds(queries, missing, ids);
  }
  return names.map((name) => ids.get(name));
}

async function readIds(
  queries: Queries,
  groups: ReadonlyMap<string, readonly (string | number)[]>,
  ids: Map<string, number>,
): Promise<void> {
  const names = [...groups.keys()];
  const wanted = [...groups.values()].map((values, place) => [...values, place]);
  const { rows } = await sql<{ id: number; place: number }>`
    select groups.id, given.place from ${rowsOf({ ...groupColumns, place: "bigint" }, wanted)}
    join usage_groups as groups using (${namesOf(groupColumns)})`.execute(queries);
  for (const { id, place } of rows) ids.set(names[place] ?? "", id);
}

interface PlacedSum {
  readonly grain: Grain;
  readonly at: number;
  readonly groupId: number;
  readonly sum: UsageSum;
}

const keyColumns = { grain: "text", at: "bigint", group_id: "bigint" } as const;
const countColumns = {
  calls: "bigint",
  failed_calls: "bigint",
  abandoned_calls: "bigint",
  input_tokens: "bigint",
  output_tokens: "bigint",
  cached_input_tokens: "bigint",
  cache_write_tokens: "bigint",
  estimated_tokens: "bigint",
} as const;
const sumColumns = {
  ...keyColumns,
  ...countColumns,
  durations: "text",
  first_events: "text",
} as const;

const additions = [
  ...Object.keys(countColumns).map((column) => `${column} = stored.${column} + excluded.${column}`),
  "durations = excluded.durations",
  "first_events = excluded.first_events",
].join(", ");

async function writeSums(queries: Queries, sums: readonly PlacedSum[]): Promise<void> {
  await addStoredLatencies(queries, sums);
  const rows = sums.map(({ grain, at, groupId, sum }) => [
    grain,
    at,
    groupId,
    sum.calls,
    sum.failedCalls,
    sum.abandonedCalls,
    sum.inputTokens,
    sum.outputTokens,
    sum.cachedInputTokens,
    sum.cacheWriteTokens,
    sum.estimatedTokens,
    compactLatencies(sum.durations),
    compactLatencies(sum.firstEvents),
  ]);
  const columns = namesOf(sumColumns);
  // SQLite would read `on conflict` as a part of the selection without a condition.
  await sql`
    insert into usage_sums as stored (${columns})
    select ${columns} from ${rowsOf(sumColumns, rows)} where true
    on conflict (grain, at, group_id) do update set ${sql.raw(additions)}`.execute(queries);
}

interface StoredLatencies {
  readonly place: number;
  readonly durations: string;
  readonly first_events: string;
}

async function addStoredLatencies(queries: Queries, sums: readonly PlacedSum[]): Promise<void> {
  const places = sums.map(({ grain, at, groupId }, place) => [grain, at, groupId, place]);
  const { rows } = await sql<StoredLatencies>`
    select given.place, sums.durations, sums.first_events
    from ${rowsOf({ ...keyColumns, place: "bigint" }, places)}
    join usage_sums as sums using (${namesOf(keyColumns)})`.execute(withRawRows(queries));
  for (const { place, durations, first_events: firstEvents } of rows) {
    const sum = sums[place]?.sum;
    if (sum === undefined) continue;
    sum.durations += durations;
    sum.firstEvents += firstEvents;
  }
}
