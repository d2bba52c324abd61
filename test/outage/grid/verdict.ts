import { percentile } from "../../support/fault-callers.ts";
import type { Call } from "../load/load-plan.ts";
import { countLine, type Finding, type Row } from "../report/table.ts";
import type { Cell, Left } from "./cells.ts";

/** What was seen of a cell. Times are wall clock, milliseconds. */
export interface CellRun {
  readonly cell: Cell;
  /** Name of the upstream that failed. */
  readonly primary: string;
  /** From when on calls tell how long they take without a fault. */
  readonly warmedUpAt: number;
  readonly brokenAt: number;
  readonly mendedAt: number;
  /** How long after the break callers may notice it. */
  readonly noticedMs: number;
  /** After that time. */
  readonly attemptsAtFailing: number;
  readonly calls: readonly Call[];
  /** Calls of another model at the same time, of the same wire and kind, without a fault. */
  readonly control: readonly Call[];
}

export interface Limits {
  readonly leastServed: number;
  /** So many failures are allowed however few the calls. */
  readonly alwaysAllowedFailures: number;
  /** Undefined: latency is shown and not judged. */
  readonly mostAddedMs: number | undefined;
  readonly mostAttemptsPerSecond: number;
  /** Share of calls that a primary target of a better priority has when it is back. */
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

/** A row of the table; its notes tell what callers got in place of answers. */
export interface CellVerdict extends Row {
  readonly findings: Readonly<Record<Column, Finding>>;
}

/** A target has its share again so long after its return. */
const returnMs = 10_000;
/** How far chance may take the share of a target below what its weight says. */
const standardDeviations = 4;

export function judgeCell(run: CellRun, limits: Limits): CellVerdict {
  const { cell, primary, calls, control, warmedUpAt, brokenAt, noticedMs, mendedAt } = run;
  const noticedUntil = brokenAt + noticedMs;
  const before = startedWithin(calls, warmedUpAt, brokenAt);
  const during = startedWithin(calls, noticedUntil, mendedAt);
  const beside = startedWithin(control, noticedUntil, mendedAt);
  const after = startedWithin(calls, mendedAt, Infinity);
  const attempts = { count: run.attemptsAtFailing, seconds: (mendedAt - noticedUntil) / 1000 };
  const findings = {
    served: judgeServed(during, limits),
    "added p99": judgeLatency({ before, during, beside }, limits),
    attempts: judgeAttempts(attempts, limits),
    share: judgeShare({ left: cell.left, primary, after, mendedAt }, limits),
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

/** What callers got in place of answers, for those of these groups that have failures. */
export function failureNotes(groups: readonly (readonly [string, readonly Call[]])[]) {
  return groups
    .filter(([, calls]) => calls.some(isFailed))
    .map(([what, calls]) => countLine(what, countFailures(calls)));
}

/** Whether enough of these calls were served; how many were not. No calls at all are a failure. */
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
  /** Undefined: nobody calls beside them who could slow them down. */
  readonly beside?: readonly Call[];
}

/**
 * The p99 against the larger of two others: before the fault, and beside it. The text shows the
 * difference, and the three: before > during, beside.
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
  readonly mendedAt: number;
  /** Calls since then. */
  readonly after: readonly Call[];
}

/** What the target serves of the calls that start ten seconds after its return or later. */
export function judgeShare(run: Return, { leastShareBack }: Limits): Finding {
  const calls = startedWithin(run.after, run.mendedAt + returnMs, Infinity);
  const served = calls.filter(({ servedBy }) => servedBy === run.primary).length;
  const share = served / calls.length;
  const least = run.left === "equal" ? leastOfHalf(calls.length) : leastShareBack;
  const inTime = secondsUntilBack(run, least);
  return { isMet: share >= least, text: `${percent(share, 0)} (${inTime})` };
}

/** As little as chance leaves of a half. */
function leastOfHalf(count: number): number {
  return 0.5 - standardDeviations * Math.sqrt(0.25 / count);
}

/** After how many whole seconds the target first had its share. */
function secondsUntilBack({ after, mendedAt, primary }: Return, least: number): string {
  const last = Math.max(...after.map(({ startedAt }) => startedAt));
  for (let second = 0; mendedAt + second * 1000 < last; second += 1) {
    const from = mendedAt + second * 1000;
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
