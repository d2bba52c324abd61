import type { UsageDimension } from "../../../domain/usage/usage-report.ts";
import type { UsageFilter } from "../../usage-reports.ts";
import type { ColumnValue } from "./usage-row.ts";
import { type Detail, details } from "./usage-steps.ts";

/** The column of a dimension, in `usage` and in `usage_groups`. */
export const dimensionColumns = {
  environment: "environment",
  account: "account_id",
  application: "application_id",
  key: "key_id",
  model: "model",
  target: "target",
  status: "status",
  class: "capacity_class",
} as const satisfies Readonly<Record<UsageDimension, string>>;

/** The dimensions that a filter asks about, and the values it asks for. */
export function filteredDimensions(
  filter: UsageFilter,
): readonly (readonly [UsageDimension, ColumnValue])[] {
  const values: readonly (readonly [UsageDimension, ColumnValue | undefined])[] = [
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

/** A part of a statement and the values of its question marks. */
export interface Condition {
  readonly sql: string;
  readonly values: readonly ColumnValue[];
}

/** The condition that rows of `usage` or `usage_groups` fit a filter; of its times it says nothing. */
export function filterCondition(filter: UsageFilter): Condition {
  const asked = filteredDimensions(filter);
  return {
    sql: asked.map(([dimension]) => ` AND ${dimensionColumns[dimension]} = ?`).join(""),
    values: asked.map(([, value]) => value),
  };
}

/** The condition that a sum belongs to a group of this detail that fits a filter. */
export function groupCondition(filter: UsageFilter, detail: Detail): Condition {
  const { sql, values } = filterCondition(filter);
  if (values.length === 0) return { sql: "", values: [] };
  return {
    sql: ` AND group_id IN (SELECT id FROM usage_groups WHERE detail = ?${sql})`,
    values: [details[detail], ...values],
  };
}

/** Fewest sums first. */
const knownDimensions: readonly (readonly [Detail, readonly UsageDimension[]])[] = [
  ["key", ["environment", "account", "application", "key"]],
  ["model", ["environment", "account", "model"]],
  ["route", ["environment", "account", "target", "status", "class"]],
];

/** The detail with the fewest sums that still knows these dimensions. */
export function smallestDetail(dimensions: readonly UsageDimension[]): Detail {
  const smallest = knownDimensions.find(([, known]) =>
    dimensions.every((dimension) => known.includes(dimension)),
  );
  return smallest?.[0] ?? "full";
}
