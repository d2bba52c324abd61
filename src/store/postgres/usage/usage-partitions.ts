import { sql } from "kysely";
import type { UsageRecord } from "../../../domain/usage/usage.ts";
import type { Queries } from "../../repositories/tables.ts";
import { stepLengthsMs, stepStart } from "../../repositories/usage/usage-steps.ts";

/** The last time that a name of a partition can tell. */
const latestMs = Date.UTC(9999, 11, 31);

/** A day of calls, in a table that retention drops as a whole. */
export interface UsagePartition {
  readonly name: string;
  /** When the day ends, in UTC. */
  readonly until: number;
}

/** Adds the missing partitions for calls. */
export async function addPartitions(
  queries: Queries,
  records: readonly Pick<UsageRecord, "startedAt">[],
): Promise<void> {
  const days = new Set(records.map(({ startedAt }) => stepStart(startedAt, "day")));
  const known = new Set((await listPartitions(queries)).map(({ until }) => until));
  for (const day of days) {
    // The table refuses calls of an invalid time.
    const isValid = day >= 0 && day <= latestMs;
    if (isValid && !known.has(day + stepLengthsMs.day)) await addPartition(queries, day);
  }
}

/** Oldest first. */
export async function listPartitions(queries: Queries): Promise<readonly UsagePartition[]> {
  const { rows } = await sql<{ name: string }>`
    select relname as name from pg_inherits join pg_class on pg_class.oid = inhrelid
    where inhparent = 'usage'::regclass order by relname`.execute(queries);
  return rows.map(({ name }) => ({ name, until: startOf(name) + stepLengthsMs.day }));
}

/** Attached after it was created, because that does not lock out readers of other days. */
async function addPartition(queries: Queries, day: number): Promise<void> {
  const table = sql.table(nameOf(day));
  const [since, until] = [sql.lit(day), sql.lit(day + stepLengthsMs.day)];
  await sql`create table ${table} (like usage including all)`.execute(queries);
  await sql`alter table usage attach partition ${table} for values from (${since}) to (${until})`.execute(
    queries,
  );
}

function nameOf(day: number): string {
  return `usage_${new Date(day).toISOString().slice(0, 10).replaceAll("-", "_")}`;
}

function startOf(name: string): number {
  return Date.parse(name.slice("usage_".length).replaceAll("_", "-"));
}

/** Removes a day of calls; returns about how many, and at least 1. */
export async function dropPartition(queries: Queries, { name }: UsagePartition): Promise<number> {
  const { rows } = await sql<{ calls: number }>`
    select greatest(reltuples, 1) as calls from pg_class where oid = ${name}::regclass`.execute(
    queries,
  );
  // Readers that come later wait behind this, so it does not wait long for those before it.
  await sql`set local lock_timeout = '200ms'`.execute(queries);
  await sql`drop table ${sql.table(name)}`.execute(queries);
  return rows[0]?.calls ?? 1;
}
