import { type UsageStep, usageSteps } from "../../../domain/usage/usage-report.ts";
import { type UsageFilter } from "../../usage-reports.ts";
import { stepCeiling, stepStart } from "./usage-steps.ts";

/** A time range read from the sums of one step. */
export interface RangePiece {
  readonly step: UsageStep;
  readonly since: number;
  /** Excluded. */
  readonly until: number;
}

/** The times that have sums. */
export interface UsageExtent {
  /** From the first day to the end of the last; both 0 when there are none. */
  readonly since: number;
  readonly until: number;
  /** The time before which the sums of each step were removed. */
  readonly horizons: Readonly<Record<UsageStep, number>>;
}

export interface RangeQuestion extends Pick<UsageFilter, "since" | "until"> {
  /** The longest step to use. */
  readonly longest: UsageStep;
  readonly extent: UsageExtent;
}

/**
 * Cuts a time range into pieces, oldest first, each of the longest steps that fit. Its ends are
 * widened to whole minutes, or to whole hours or days where shorter steps were removed.
 */
export function cutRange({ since, until, longest, extent }: RangeQuestion): RangePiece[] {
  if (since >= until) return [];
  const { horizons } = extent;
  const steps = usageSteps.slice(0, usageSteps.indexOf(longest) + 1);
  const start = moveOutwards(Math.max(since, extent.since), stepStart, { steps, horizons });
  const end = moveOutwards(Math.min(until, extent.until), stepCeiling, { steps, horizons });
  return fill(start, end, steps);
}

function moveOutwards(
  at: number,
  round: (at: number, step: UsageStep) => number,
  {
    steps,
    horizons,
  }: { readonly steps: readonly UsageStep[]; readonly horizons: UsageExtent["horizons"] },
): number {
  let moved = at;
  for (const [index, step] of steps.entries()) {
    moved = round(moved, step);
    const longer = steps[index + 1];
    // This step covers what lies between `moved` and the ends of the next longer step.
    if (longer === undefined || stepStart(moved, longer) >= horizons[step]) return moved;
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
