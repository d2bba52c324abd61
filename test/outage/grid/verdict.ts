import { percentile } from "../../support/fault-callers.ts";
import type { Call } from "../load/load-plan.ts";
import { countLine, type Finding, type Row } from "../report/table.ts";
import type { Cell } from "./cells.ts";

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
  const { cell, calls, control, brokenAt, noticedMs, mendedAt } = run;
  const during = startedWithin(calls, brokenAt + noticedMs, mendedAt);
  const after = startedWithin(calls, mendedAt, Infinity);
  const findings = {
    served: judgeServed(during, limits),
    "added p99": judgeLatency(run, limits),
    attempts: judgeAttempts(run, limits),
    share: judgeShare(run, limits),
    return: judgeServed(after, limits),
    beside: judgeServed(startedWithin(control, brokenAt, Infinity), limits),
  };
  const notes = [
    ["during the fault", during],
    ["after it", after],
    ["calls beside it", control],
  ] as const;
  return {
    name: cell.name,
    findings,
    notes: notes
      .filter(([, some]) => some.some(isFailed))
      .map(([what, some]) => countLine(what, countFailures(some))),
  };
}

/** Whether enough of these calls were served; how many were not. No calls at all are a failure. */
export function judgeServed(calls: readonly Call[], limits: Limits): Finding {
  const failed = calls.filter(isFailed).length;
  const { leastServed, alwaysAllowedFailures } = limits;
  const share = 1 - failed / calls.length;
  const isMet = calls.length > 0 && (share >= leastServed || failed <= alwaysAllowedFailures);
  return { isMet, text: `${percent(share, 2)} (${failed}/${calls.length})` };
}

/**
 * The p99 against the larger of two others: before the fault, and beside it. The text shows the
 * difference, and the three: before > during, beside.
 */
function judgeLatency(run: CellRun, { mostAddedMs }: Limits): Finding {
  const { calls, control, warmedUpAt, brokenAt, noticedMs, mendedAt } = run;
  const from = brokenAt + noticedMs;
  const before = p99(startedWithin(calls, warmedUpAt, brokenAt));
  const during = p99(startedWithin(calls, from, mendedAt));
  const beside = p99(startedWithin(control, from, mendedAt));
  const addedMs = during - Math.max(before, beside);
  return {
    isMet: mostAddedMs === undefined || addedMs <= mostAddedMs,
    text: `${whole(addedMs)} ms (${whole(before)} > ${whole(during)}, ${whole(beside)})`,
  };
}

function judgeAttempts(run: CellRun, { mostAttemptsPerSecond }: Limits): Finding {
  const seconds = (run.mendedAt - run.brokenAt - run.noticedMs) / 1000;
  const perSecond = run.attemptsAtFailing / seconds;
  return { isMet: perSecond <= mostAttemptsPerSecond, text: `${perSecond.toFixed(2)}/s` };
}

/** What the target serves of the calls that start ten seconds after its return or later. */
function judgeShare(run: CellRun, { leastShareBack }: Limits): Finding {
  const calls = startedWithin(run.calls, run.mendedAt + returnMs, Infinity);
  const served = calls.filter(({ servedBy }) => servedBy === run.primary).length;
  const share = served / calls.length;
  const least = run.cell.left === "equal" ? leastOfHalf(calls.length) : leastShareBack;
  const inTime = secondsUntilBack(run, least);
  return { isMet: share >= least, text: `${percent(share, 0)} (${inTime})` };
}

/** As little as chance leaves of a half. */
function leastOfHalf(count: number): number {
  return 0.5 - standardDeviations * Math.sqrt(0.25 / count);
}

/** After how many whole seconds the target first had its share. */
function secondsUntilBack({ calls, mendedAt, primary }: CellRun, least: number): string {
  const last = Math.max(...calls.map(({ startedAt }) => startedAt));
  for (let second = 0; mendedAt + second * 1000 < last; second += 1) {
    const from = mendedAt + second * 1000;
    const ofSecond = startedWithin(calls, from, from + 1000);
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
