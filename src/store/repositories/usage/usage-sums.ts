import { sql } from "kysely";
import { compactLatencies, encodeLatency } from "../../../domain/usage/latency-histogram.ts";
import type { UsageRecord } from "../../../domain/usage/usage.ts";
import { withRawRows } from "../session.ts";
import type { Queries, UsageSum } from "../tables.ts";
import { type ColumnTypes, namesOf, rowsOf } from "../row.ts";
import { type Grain, stepStart } from "./usage-range.ts";

export type CountedCall = Pick<
  UsageRecord,
  | "outcome"
  | "inputTokens"
  | "outputTokens"
  | "cachedInputTokens"
  | "cacheWriteTokens"
  | "costNano"
  | "usageSource"
  | "durationMs"
  | "firstEventMs"
>;

/** What is counted of calls. */
export const counts = [
  "calls",
  "failedCalls",
  "abandonedCalls",
  "inputTokens",
  "outputTokens",
  "cachedInputTokens",
  "cacheWriteTokens",
  "estimatedTokens",
  "unpricedCalls",
] as const;

/** The name of a field in the database. */
export function columnOf(field: string): string {
  return field.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

export function sumOfNone(): UsageSum {
  return {
    calls: 0,
    failedCalls: 0,
    abandonedCalls: 0,
    inputTokens: 0,
    outputTokens: 0,
    cachedInputTokens: 0,
    cacheWriteTokens: 0,
    estimatedTokens: 0,
    unpricedCalls: 0,
    costNano: 0n,
    durations: "",
    firstEvents: "",
  };
}

export function addCall(sum: UsageSum, call: CountedCall): void {
  const { outcome, inputTokens, outputTokens, firstEventMs, cacheWriteTokens = 0 } = call;
  const isCompleted = outcome === "completed";
  sum.calls += 1;
  sum.failedCalls += isCompleted ? 0 : 1;
  sum.abandonedCalls += outcome === "abandoned" ? 1 : 0;
  sum.inputTokens += inputTokens;
  sum.outputTokens += outputTokens;
  sum.cachedInputTokens += call.cachedInputTokens;
  sum.cacheWriteTokens += cacheWriteTokens;
  sum.estimatedTokens += call.usageSource === "upstream" ? 0 : inputTokens + outputTokens;
  if (call.costNano === undefined) sum.unpricedCalls += 1;
  else sum.costNano += BigInt(call.costNano);
  if (isCompleted) sum.durations += encodeLatency(call.durationMs);
  if (firstEventMs !== undefined) sum.firstEvents += encodeLatency(firstEventMs);
}

export function addSum(sum: UsageSum, other: Readonly<UsageSum>): void {
  for (const name of counts) sum[name] += other[name];
  sum.costNano += other.costNano;
  sum.durations += other.durations;
  sum.firstEvents += other.firstEvents;
}

/** Calls of one group in one hour. */
interface HourSum {
  readonly group: Group;
  readonly at: number;
  readonly sum: UsageSum;
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
  const hours = new Map<string, HourSum>();
  for (const record of records) {
    const at = stepStart(record.startedAt, "hour");
    const group = groupOf(record);
    // No text in the database has the separator.
    const name = `${group.join("\0")}\0${at}`;
    let hour = hours.get(name);
    if (hour === undefined) hours.set(name, (hour = { group, at, sum: sumOfNone() }));
    addCall(hour.sum, record);
  }
  const all = [...hours.values()];
  const ids = await findGroups(
    queries,
    all.map(({ group }) => group),
  );
  const sums = new Map<string, PlacedSum>();
  for (const [place, { at: hour, sum }] of all.entries()) {
    const groupId = ids[place];
    if (groupId === undefined) throw new Error("a group of usage has no id");
    const placed = { grain: "hour", at: hour, groupId, sum } as const;
    if (hour >= hoursSince) sums.set(`hour ${hour} ${groupId}`, placed);
    const at = stepStart(hour, "day");
    const name = `day ${at} ${groupId}`;
    const day = sums.get(name);
    if (day !== undefined) addSum(day.sum, sum);
    else sums.set(name, { grain: "day", at, groupId, sum: { ...sum } });
  }
  await writeSums(queries, [...sums.values()]);
}

/** What a changed cost of a stored call adds to the sums that it is in. */
export interface CostChange {
  readonly call: UsageRecord;
  readonly costNano: number;
  readonly unpricedCalls: number;
}

/** Adds changed costs to the sums of hours and days; those that were removed stay away. */
export async function moveSums(queries: Queries, changes: readonly CostChange[]): Promise<void> {
  const ids = await findGroups(
    queries,
    changes.map(({ call }) => groupOf(call)),
  );
  const moved = new Map<string, [string, number, number, number, number]>();
  for (const [place, { call, costNano, unpricedCalls }] of changes.entries()) {
    for (const grain of ["hour", "day"] as const) {
      const at = stepStart(call.startedAt, grain);
      const groupId = ids[place] ?? 0;
      const name = `${grain} ${at} ${groupId}`;
      const before = moved.get(name) ?? [grain, at, groupId, 0, 0];
      moved.set(name, [grain, at, groupId, before[3] + costNano, before[4] + unpricedCalls]);
    }
  }
  const types = { ...keyColumns, cost: "bigint", unpriced: "bigint" } as const;
  await sql`
    update usage_sums set cost_nano = usage_sums.cost_nano + given.cost,
      unpriced_calls = usage_sums.unpriced_calls + given.unpriced
    from ${rowsOf(types, [...moved.values()])}
    where usage_sums.grain = given.grain and usage_sums.at = given.at
      and usage_sums.group_id = given.group_id`.execute(queries);
}

/** The columns of `usage_groups` that tell its rows apart. */
const groupColumns = {
  account_id: "text",
  key_id: "text",
  model: "text",
  dialect: "text",
  target: "text",
  capacity_class: "text",
  outcome: "text",
  status: "bigint",
  code: "text",
  application_id: "text",
  environment: "text",
} as const satisfies ColumnTypes;

/** Values in the order of `groupColumns`; absent texts are empty. */
function groupOf(record: UsageRecord): Group {
  return [
    record.accountId,
    record.keyId,
    record.model,
    record.dialect,
    record.target ?? "",
    record.capacityClass,
    record.outcome,
    record.status,
    record.code ?? "",
    record.applicationId,
    record.environment,
  ];
}

type Group = readonly (string | number)[];

/** Finds or creates groups, some of them equal; returns their ids in their order. */
async function findGroups(
  queries: Queries,
  groups: readonly Group[],
): Promise<readonly (number | undefined)[]> {
  const ids = await readIds(queries, groups);
  const missing = new Map<string, Group>();
  for (const [place, group] of groups.entries()) {
    if (ids[place] === undefined) missing.set(JSON.stringify(group), group);
  }
  if (missing.size === 0) return ids;
  const columns = namesOf(groupColumns);
  const rows = rowsOf(groupColumns, [...missing.values()]);
  await sql`insert into usage_groups (${columns}) select ${columns} from ${rows}`.execute(queries);
  return readIds(queries, groups);
}

async function readIds(
  queries: Queries,
  groups: readonly Group[],
): Promise<readonly (number | undefined)[]> {
  const wanted = groups.map((values, place) => [...values, place]);
  const { rows } = await sql<{ id: number; place: number }>`
    select groups.id, given.place from ${rowsOf({ ...groupColumns, place: "bigint" }, wanted)}
    join usage_groups as groups using (${namesOf(groupColumns)})`.execute(queries);
  const ids = Array<number | undefined>(groups.length);
  for (const { id, place } of rows) ids[place] = id;
  return ids;
}

interface PlacedSum {
  readonly grain: Grain;
  readonly at: number;
  readonly groupId: number;
  readonly sum: UsageSum;
}

const keyColumns = { grain: "text", at: "bigint", group_id: "bigint" } as const;
const countColumns = [...counts.map(columnOf), "cost_nano"];
const sumColumns: ColumnTypes = {
  ...keyColumns,
  ...Object.fromEntries(countColumns.map((column) => [column, "bigint"] as const)),
  durations: "text",
  first_events: "text",
};

const additions = [
  ...countColumns.map((column) => `${column} = stored.${column} + excluded.${column}`),
  "durations = excluded.durations",
  "first_events = excluded.first_events",
].join(", ");

async function writeSums(queries: Queries, sums: readonly PlacedSum[]): Promise<void> {
  await addStoredLatencies(queries, sums);
  const rows = sums.map(({ grain, at, groupId, sum }) => [
    grain,
    at,
    groupId,
    ...counts.map((name) => sum[name]),
    Number(sum.costNano),
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
