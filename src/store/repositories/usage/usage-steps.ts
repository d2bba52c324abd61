import type { UsageStep } from "../../../domain/usage/usage-report.ts";
import type { UsageRetention } from "../../store.ts";

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

/** Sums are removed in whole steps of the next longer kind, which replace them in reports. */
export function horizonOf(step: UsageStep, retention: UsageRetention): number | undefined {
  const { calls, minutes, hours, days } = retention;
  switch (step) {
    case "minute":
      return minutes === undefined ? undefined : stepStart(minutes, "hour");
    case "hour":
      return hours === undefined ? undefined : stepStart(hours, "day");
    case "day": {
      // A day is kept as long as anything in it, because erasure finds the rest through it.
      const times = [calls, minutes, hours, days].filter((at) => at !== undefined);
      return times.length < 4 ? undefined : stepStart(Math.min(...times), "day");
    }
  }
}

/** The sums of a day in the order of their erasure: those by key go last, as they show the day. */
export const erasureOrder: readonly (readonly [UsageStep, Detail])[] = [
  ...(["minute", "hour"] as const).flatMap((step) =>
    stepDetails[step].map((detail) => [step, detail] as const),
  ),
  ["day", "full"],
  ["day", "model"],
  ["day", "route"],
  ["day", "key"],
];
