import { type UsageStep, usageSteps } from "../../../domain/usage/usage.ts";
import type { UsageFilter } from "../../usage-reports.ts";

/** The steps that have stored sums; minutes come from the calls. */
export const grains = ["hour", "day"] as const satisfies readonly UsageStep[];
export type Grain = (typeof grains)[number];

export const stepLengthsMs: Readonly<Record<UsageStep, number>> = {
  minute: 60_000,
  hour: 3_600_000,
  day: 86_400_000,
};

/** The start of the step that contains a time. */
export function stepStart(at: number, step: UsageStep): number {
  return Math.floor(at / stepLengthsMs[step]) * stepLengthsMs[step];
}

/** The start of the first step at or after a time. */
export function stepCeiling(at: number, step: UsageStep): number {
  return Math.ceil(at / stepLengthsMs[step]) * stepLengthsMs[step];
}

/** A time range read from the sums of one step, or for minutes from the calls. */
export interface RangePiece {
  readonly step: UsageStep;
  readonly since: number;
  /** Excluded. */
  readonly until: number;
}

/** The times that have usage. */
export interface UsageExtent {
  /** The first day; 0 when there is none. */
  readonly since: number;
  /** Nothing is stored at or after this; 0 when nothing is. */
  readonly until: number;
  /** The time before which calls were removed. */
  readonly callsSince: number;
  /** The same for the sums of hours. */
  readonly hoursSince: number;
}

export interface RangeQuestion extends Pick<UsageFilter, "since" | "until"> {
  /** The longest step to use. */
  readonly longest: UsageStep;
  readonly extent: UsageExtent;
}

/**
 * Cuts a time range into pieces, oldest first, each of the longest steps that fit. Its ends are
 * widened to whole minutes, to whole hours or days where shorter steps were removed, and at the end
 * of everything stored to the longest step, which has nothing beyond.
 */
export function cutRange({ since, until, longest, extent }: RangeQuestion): RangePiece[] {
  if (since >= until) return [];
  const steps = usageSteps.slice(0, usageSteps.indexOf(longest) + 1);
  const last = until >= extent.until ? stepCeiling(extent.until, longest) : until;
  const outwards = { steps, extent };
  const start = moveOutwards(Math.max(since, extent.since), stepStart, outwards);
  const end = moveOutwards(last, stepCeiling, outwards);
  return fill(start, end, steps);
}

function moveOutwards(
  at: number,
  round: (at: number, step: UsageStep) => number,
  { steps, extent }: { readonly steps: readonly UsageStep[]; readonly extent: UsageExtent },
): number {
  const { callsSince, hoursSince } = extent;
  const keptSince: Readonly<Record<UsageStep, number>> = {
    // Hours are read beside them.
    minute: Math.max(callsSince, hoursSince),
    hour: hoursSince,
    day: 0,
  };
  let moved = at;
  for (const [index, step] of steps.entries()) {
    moved = round(moved, step);
    const longer = steps[index + 1];
    // This step covers what lies between `moved` and the ends of the next longer step.
    if (longer === undefined || stepStart(moved, longer) >= keptSince[step]) return moved;
  }
  return moved;
}

function fill(since: number, until: number, steps: readonly UsageStep[]): RangePiece[] {
  const step = steps.at(-1);
  if (step === undefined || since >= until) return [];
  const shorter = steps.slice(0, -1);
  const first = stepCeiling(since, step);
  const last = stepStart(until, step);
  if (shorter.length === 0) return [{ step, since, until }];
  if (first >= last) return fill(since, until, shorter);
  return [
    ...fill(since, first, shorter),
    { step, since: first, until: last },
    ...fill(last, until, shorter),
  ];
}
