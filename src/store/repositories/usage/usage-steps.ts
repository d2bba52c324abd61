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

/** The granularity of sums by dimension, as in the column `detail`. */
export const details = { full: 0, key: 1, model: 2, route: 3 } as const;
export type Detail = keyof typeof details;

/** Minutes have only full sums: they are read for hours at most, so others would save little. */
export const stepDetails: Readonly<Record<UsageStep, readonly Detail[]>> = {
  minute: ["full"],
  hour: ["full", "key", "model", "route"],
  day: ["full", "key", "model", "route"],
};

/** The start of the step that contains a time. */
export function stepStart(at: number, step: UsageStep): number {
  return Math.floor(at / stepLengthsMs[step]) * stepLengthsMs[step];
}

/** The start of the first step at or after a time. */
export function stepCeiling(at: number, step: UsageStep): number {
  return Math.ceil(at / stepLengthsMs[step]) * stepLengthsMs[step];
}
