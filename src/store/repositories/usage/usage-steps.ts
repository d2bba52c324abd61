import type { UsageStep } from "../../../domain/usage/usage-report.ts";

export const stepLengthsMs: Readonly<Record<UsageStep, number>> = {
  minute: 60_000,
  hour: 3_600_000,
  day: 86_400_000,
};

/** The table with the sums of a step. */
export const stepTables: Readonly<Record<UsageStep, string>> = {
  minute: "usage_minutes",
  hour: "usage_hours",
  day: "usage_days",
};

/** How closely sums tell calls apart, as the column `detail` has it. */
export const details = { full: 0, key: 1, model: 2, route: 3 } as const;
export type Detail = keyof typeof details;

/** Minutes are read for hours at most: their sums by key or by model would save little. */
export const stepDetails: Readonly<Record<UsageStep, readonly Detail[]>> = {
  minute: ["full"],
  hour: ["full", "key", "model", "route"],
  day: ["full", "key", "model", "route"],
};

/** When the step that holds a time begins. */
export function stepStart(at: number, step: UsageStep): number {
  return Math.floor(at / stepLengthsMs[step]) * stepLengthsMs[step];
}

/** When the first step begins that does not begin before a time. */
export function stepCeiling(at: number, step: UsageStep): number {
  return Math.ceil(at / stepLengthsMs[step]) * stepLengthsMs[step];
}
