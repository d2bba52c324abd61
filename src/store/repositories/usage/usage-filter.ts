import { type Expression, sql, type SqlBool } from "kysely";
import type { UsageDimension } from "../../../domain/usage/usage-report.ts";
import type { UsageFilter } from "../../usage-reports.ts";
import { type Detail, details } from "./usage-steps.ts";

/** The column of a dimension, in `usage` and in `usageGroups`. */
export const dimensionColumns = {
  environment: "environment",
  account: "accountId",
  application: "applicationId",
  key: "keyId",
  model: "model",
  target: "target",
  status: "status",
  class: "capacityClass",
} as const satisfies Readonly<Record<UsageDimension, string>>;

/** The dimensions of a filter and their values. */
export function filteredDimensions(
  filter: UsageFilter,
): readonly (readonly [UsageDimension, string | number])[] {
  const values: readonly (readonly [UsageDimension, string | number | undefined])[] = [
    ["environment", filter.environment],
    ["account", filter.accountId],
    ["application", filter.applicationId],
    ["key", filter.keyId],
    ["model", filter.model],
    ["target", filter.target],
    ["status", filter.status],
    ["class", filter.capacityClass],
  ];
  return values.flatMap(([dimension, value]) =>
    value === undefined ? [] : [[dimension, value] as const],
  );
}

/** The conditions of a filter on rows, without its times. */
export function filterConditions(filter: UsageFilter): Expression<SqlBool>[] {
  return filteredDimensions(filter).map(
    ([dimension, value]) => sql`${sql.ref(dimensionColumns[dimension])} = ${value}`,
  );
}

/** The conditions of a filter on sums of groups of this detail. */
export function groupConditions(filter: UsageFilter, detail: Detail): Expression<SqlBool>[] {
  const conditions = filterConditions(filter);
  if (conditions.length === 0) return [];
  const ofGroup = [sql`detail = ${details[detail]}`, ...conditions];
  return [sql`group_id in (select id from usage_groups where ${all(ofGroup)})`];
}

export function all(conditions: readonly Expression<unknown>[]): Expression<SqlBool> {
  return sql`${sql.join(conditions, sql` and `)}`;
}

/** Details, fewest sums first. */
const knownDimensions: readonly (readonly [Detail, readonly UsageDimension[]])[] = [
  ["key", ["environment", "account", "application", "key"]],
  ["model", ["environment", "account", "model"]],
  ["route", ["environment", "account", "target", "status", "class"]],
];

/** The detail with the fewest sums that has all these dimensions. */
export function smallestDetail(dimensions: readonly UsageDimension[]): Detail {
  const smallest = knownDimensions.find(([, known]) =>
    dimensions.every((dimension) => known.includes(dimension)),
  );
  return smallest?.[0] ?? "full";
}
