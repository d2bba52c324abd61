import { percentile } from "../../support/fault-callers.ts";
import type { Call } from "../load/load-plan.ts";
import { countLine, type Finding, type Row } from "../report/table.ts";
import type { Cell, Left } from "./cells.ts";

/** The observations of a cell. Times are wall clock, milliseconds. */
export interface CellRun {
  readonly cell: Cell;
  /** The name of the upstream that failed. */
  readonly primary: string;
  /** The time from which calls show the latency without a fault. */
  readonly warmedUpAt: number;
  readonly brokenAt: number;
  readonly repairedAt: number;
  /** The time after the break in which callers may notice it. */
  readonly noticedMs: number;
  /** After that time. */
  readonly attemptsAtFailing: number;
  readonly calls: readonly Call[];
  /** Calls of another model at the same time, of the same wire and kind, without a fault. */
  readonly control: readonly Call[];
}

export interface Limits {
  readonly leastServed: number;
  /** Failures that are allowed for any number of calls. */
  readonly alwaysAllowedFailures: number;
  /** Undefined: latency is shown and not judged. */
  readonly mostAddedMs: number | undefined;
  readonly mostAttemptsPerSecond: number;
  /** The share of calls of a primary target with a better priority after its return. */
  readonly leastShareBack: number;
}

/** The promises of the grid. */
export const gridLimits: Limits = {
  leastServed: 0.999,
  alwaysAllowedFailures: 0,
  mostAddedMs: 50,
  mostAttemptsPerSecond: 1,
  leastShareBack: 0.95,
};

export const columns = ["served", "added p99", "attempts", "share", "return", "beside"] as const;
export type Column = (typeof columns)[number];

/** A row of the table; its notes have the errors of callers. */
export interface CellVerdict extends Row {
  readonly findings: Readonly<Record<Column, Finding>>;
}

/** The longest time until a target has its share after its return. */
const returnMs = 10_000;
/** How far chance may put the share of a target below its weight. */
const standardDeviations = 4;

export function judgeCell(run: CellRun, limits: Limits): CellVerdict {
  const { cell, primary, calls, control, warmedUpAt, brokenAt, noticedMs, repairedAt } = run;
  const noticedUntil = brokenAt + noticedMs;
  const before = startedWithin(calls, warmedUpAt, brokenAt);
  const during = startedWithin(calls, noticedUntil, repairedAt);
  const beside = startedWithin(control, noticedUntil, repairedAt);
  const after = startedWithin(calls, repairedAt, Infinity);
  const attempts = { count: run.attemptsAtFailing, seconds: (repairedAt - noticedUntil) / 1000 };
  const findings = {
    served: judgeServed(during, limits),
    "added p99": judgeLatency({ before, during, beside }, limits),
    attempts: judgeAttempts(attempts, limits),
    share: judgeShare({ left: cell.left, primary, after, repairedAt }, limits),
    return: judgeServed(after, limits),
    beside: judgeServed(startedWithin(control, brokenAt, Infinity), limits),
  };
  const notes = failureNotes([
    ["during the fault", during],
    ["after it", after],
    ["calls beside it", control],
  ]);
  return { name: cell.name, findings, notes };
}

/** The errors of callers, for the groups that have failures. */
export function failureNotes(groups: readonly (readonly [string, readonly Call[]])[]) {
  return groups
    .filter(([, calls]) => calls.some(isFailed))
    .map(([what, calls]) => countLine(what, countFailures(calls)));
}

/** Whether enough calls were served, and how many were not. No calls are a failure. */
export function judgeServed(calls: readonly Call[], limits: Limits): Finding {
  const failed = calls.filter(isFailed).length;
  const { leastServed, alwaysAllowedFailures } = limits;
  const share = 1 - failed / calls.length;
  const isMet = calls.length > 0 && (share >= leastServed || failed <= alwaysAllowedFailures);
  return { isMet, text: `${percent(share, 2)} (${failed}/${calls.length})` };
}

export interface LatencyGroups {
  readonly before: readonly Call[];
  readonly during: readonly Call[];
  /** Undefined: no concurrent calls can slow them down. */
  readonly beside?: readonly Call[];
}

/**
 * Compares the p99 with the larger of two: before the fault, and of the control. The text shows the
 * difference and all three: before > during, beside.
 */
export function judgeLatency(groups: LatencyGroups, { mostAddedMs }: Limits): Finding {
  const [before, during] = [p99(groups.before), p99(groups.during)];
  const beside = groups.beside === undefined ? before : p99(groups.beside);
  const addedMs = during - Math.max(before, beside);
  const others = groups.beside === undefined ? "" : `, ${whole(beside)}`;
  return {
    isMet: mostAddedMs === undefined || addedMs <= mostAddedMs,
    text: `${whole(addedMs)} ms (${whole(before)} > ${whole(during)}${others})`,
  };
}

export function judgeAttempts(
  { count, seconds }: { readonly count: number; readonly seconds: number },
  { mostAttemptsPerSecond }: Limits,
): Finding {
  const perSecond = count / seconds;
  return { isMet: perSecond <= mostAttemptsPerSecond, text: `${perSecond.toFixed(2)}/s` };
}

export interface Return {
  readonly left: Left;
  readonly primary: string;
  readonly repairedAt: number;
  /** Calls since then. */
  readonly after: readonly Call[];
}

/** The target's share of the calls that start ten seconds or more after its return. */
export function judgeShare(run: Return, { leastShareBack }: Limits): Finding {
  const calls = startedWithin(run.after, run.repairedAt + returnMs, Infinity);
  const served = calls.filter(({ servedBy }) => servedBy === run.primary).length;
  const share = served / calls.length;
  const least = run.left === "equal" ? leastOfHalf(calls.length) : leastShareBack;
  const inTime = secondsUntilBack(run, least);
  return { isMet: share >= least, text: `${percent(share, 0)} (${inTime})` };
}

/** A half, less chance. */
function leastOfHalf(count: number): number {
  return 0.5 - standardDeviations * Math.sqrt(0.25 / count);
}

/** The number of whole seconds until the target had its share. */
function secondsUntilBack({ after, repairedAt, primary }: Return, least: number): string {
  const last = Math.max(...after.map(({ startedAt }) => startedAt));
  for (let second = 0; repairedAt + second * 1000 < last; second += 1) {
    const from = repairedAt + second * 1000;
    const ofSecond = startedWithin(after, from, from + 1000);
    const served = ofSecond.filter(({ servedBy }) => servedBy === primary).length;
    if (ofSecond.length > 0 && served / ofSecond.length >= least) return `after ${second} s`;
  }
  return "never";
}

export function startedWithin(calls: readonly Call[], from: number, until: number): Call[] {
  return calls.filter(({ startedAt }) => startedAt >= from && startedAt < until);
}

export function countFailures(calls: readonly Call[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { failure } of calls.filter(isFailed)) counts[failure] = (counts[failure] ?? 0) + 1;
  return counts;
}

export function isFailed({ failure }: Call): boolean {
  return failure !== "";
}

function p99(calls: readonly Call[]): number {
  return percentile(
    calls.map(({ latencyMs }) => latencyMs),
    0.99,
  );
}

function whole(value: number): string {
  return value.toFixed(0);
}

function percent(share: number, digits: number): string {
  return `${(share * 100).toFixed(digits)} %`;
}
