import { type Expression, type RawBuilder, sql, type SqlBool } from "kysely";
import {
  type GroupDimension,
  isOfCalls,
  type UsageDimension,
} from "../../../domain/usage/usage.ts";
import type { CallFilter, UsageFilter } from "../../usage-reports.ts";
import { unindexed } from "../entity-table.ts";
import { rowsOf, storableText } from "../row.ts";
import { readTags } from "./usage-row.ts";

/** The column of a dimension, in `usage` and in `usage_groups`. */
export const dimensionColumns = {
  environment: "environment",
  account: "account_id",
  application: "application_id",
  key: "key_id",
  model: "model",
  dialect: "dialect",
  target: "target",
  outcome: "outcome",
  status: "status",
  code: "code",
  class: "capacity_class",
} as const satisfies Readonly<Record<UsageDimension, string>>;

/** The columns of a filter and their values. */
export function filteredColumns(
  filter: UsageFilter,
): readonly (readonly [string, string | number])[] {
  const values: readonly (readonly [string, string | number | undefined])[] = [
    [dimensionColumns.environment, filter.environment],
    [dimensionColumns.account, filter.accountId],
    [dimensionColumns.application, filter.applicationId],
    [dimensionColumns.key, filter.keyId],
    [dimensionColumns.model, filter.model],
    [dimensionColumns.dialect, filter.dialect],
    [dimensionColumns.target, filter.target],
    [dimensionColumns.outcome, filter.outcome],
    [dimensionColumns.status, filter.status],
    [dimensionColumns.code, filter.code],
    [dimensionColumns.class, filter.capacityClass],
  ];
  return values.flatMap(([column, value]) => (value === undefined ? [] : [[column, value]]));
}

/** The column of `usage` that a dimension is in. */
export function callColumnOf(dimension: GroupDimension): string {
  if (!isOfCalls(dimension)) return dimensionColumns[dimension];
  return dimension === "end_user" ? "end_user" : "tags";
}

/** The value of a dimension in a row's column. */
export function groupValueOf(
  dimension: GroupDimension,
  value: string | number | null,
): string | number | null {
  if (!dimension.startsWith("tag:") || typeof value !== "string") return value;
  const key = dimension.slice("tag:".length);
  const tags = readTags(value);
  return Object.hasOwn(tags, key) ? (tags[key] ?? null) : null;
}

/** The conditions of a filter on calls, without its times. */
export function callConditions(filter: CallFilter): readonly Expression<SqlBool>[] {
  const { mayBeBilledTwice, endUsers, tag } = filter;
  const conditions = filteredColumns(filter).map(([column, value]) => {
    // Calls that may be billed twice are found only by their own index.
    const found = mayBeBilledTwice === true ? unindexed(column) : sql.ref(column);
    return sql<SqlBool>`${found} = ${value}`;
  });
  if (mayBeBilledTwice === true) conditions.unshift(isBilledTwice);
  if (endUsers !== undefined) conditions.push(isAnyOf(endUsers));
  if (tag !== undefined) conditions.push(hasTag(tag));
  return conditions;
}

function isAnyOf(endUsers: readonly string[]): RawBuilder<SqlBool> {
  const names = rowsOf(
    { end_user: "text" },
    endUsers.map((name) => [storableText(name)]),
  );
  return sql`end_user in (select end_user from ${names})`;
}

/** Quotes within a value have a backslash before them, so no value looks like a pair. */
function hasTag([key, value]: readonly [string, string]): RawBuilder<SqlBool> {
  const pair = `${JSON.stringify(key)}:${JSON.stringify(value)}`;
  // The one search for a text that both databases have in the same words and that tells cases apart.
  return sql<SqlBool>`replace(tags, ${pair}, '') <> tags`;
}

/** A literal, not a parameter, to match the condition of the partial index. */
const isBilledTwice = sql<SqlBool>`may_be_billed_twice = 1`;

/** The condition of a filter on sums, without its times. */
export function sumConditions(filter: UsageFilter): readonly Expression<SqlBool>[] {
  const conditions = filteredColumns(filter).map(
    ([column, value]) => sql`${sql.ref(column)} = ${value}`,
  );
  if (conditions.length === 0) return [];
  return [sql<SqlBool>`group_id in (select id from usage_groups where ${all(conditions)})`];
}

export function all(conditions: readonly Expression<unknown>[]): RawBuilder<SqlBool> {
  return sql<SqlBool>`${sql.join(conditions, sql` and `)}`;
}
