import { sql } from "kysely";
import type { UsageRecord } from "../../../domain/usage/usage.ts";
import { RefusedRows } from "../../errors.ts";
import type { Queries } from "../../repositories/tables.ts";
import { storableText } from "../../repositories/storable-text.ts";
import { toValues, usageColumns } from "../../repositories/usage/usage-row.ts";
import { rowsOf } from "./row-set.ts";

/** A call as the database returns it, because its groups are looked up by their texts. */
export function storable(record: UsageRecord): UsageRecord {
  const { id, environment, accountId, applicationId, application, keyId } = record;
  const { model, target, code } = record;
  return {
    ...record,
    id: textOf(id),
    environment: textOf(environment),
    accountId: textOf(accountId),
    applicationId: textOf(applicationId),
    application: textOf(application),
    keyId: textOf(keyId),
    model: textOf(model),
    target: target === undefined ? undefined : textOf(target),
    code: code === undefined ? undefined : textOf(code),
  };
}

function textOf(value: unknown): string {
  if (typeof value === "string") return storableText(value);
  throw new RefusedRows("a call lacks a text");
}

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
  if (typeof value !== "object" || value === null) return value;
  throw new RefusedRows("a column of a call cannot hold an object");
}
