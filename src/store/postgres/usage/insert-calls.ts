import { sql } from "kysely";
import type { UsageRecord } from "../../../domain/usage/usage.ts";
import { RefusedRows } from "../../errors.ts";
import type { Queries } from "../../repositories/tables.ts";
import { toValues, usageColumns } from "../../repositories/usage/usage-row.ts";
import { withoutNul } from "../connection/without-nul.ts";
import { rowsOf } from "./row-set.ts";

/** Stores the calls that are not stored yet, and returns those. */
export async function insertCalls(
  queries: Queries,
  records: readonly UsageRecord[],
): Promise<readonly UsageRecord[]> {
  const byId = new Map<string, UsageRecord>();
  for (const record of records) {
    if (!byId.has(record.id)) byId.set(record.id, record);
  }
  const rows = [...byId.values()].map(toRow);
  const columns = sql.raw(usageColumns.join(", "));
  const insertion = sql<{ id: string }>`
    insert into usage (${columns}) select ${columns} from ${rowsOf("usage", rows)}
    on conflict (id, started_at) do nothing returning id`;
  const inserted = new Set((await insertion.execute(queries)).rows.map(({ id }) => id));
  return [...byId.values()].filter(({ id }) => inserted.has(id));
}

function toRow(record: UsageRecord): Readonly<Record<string, unknown>> {
  const values: readonly unknown[] = toValues(record);
  return Object.fromEntries(usageColumns.map((column, index) => [column, plain(values[index])]));
}

/** PostgreSQL would store an object as its JSON. */
function plain(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return withoutNul(value);
  throw new RefusedRows("a column of a call cannot hold an object");
}
