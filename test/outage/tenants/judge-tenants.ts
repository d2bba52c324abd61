import { percentile } from "../../support/fault-callers.ts";
import { countFailures, isFailed, startedWithin } from "../grid/verdict.ts";
import type { Call } from "../load/load-plan.ts";
import { countLine, type Finding, type Row } from "../report/table.ts";
import type { TenantRun } from "./run-scenario.ts";

export const tenantColumns = ["served", "refused", "p50", "p99"] as const;
export type TenantColumn = (typeof tenantColumns)[number];

export interface TenantLimits {
  /** Of the share that is served. */
  readonly mostLost: number;
  /** Part of the latency without the faults. */
  readonly mostAdded: number;
  /** Differences that two gateways without faults show now and then; milliseconds. */
  readonly noiseMs: Readonly<Record<"p50" | "p99", number>>;
}

export interface TenantVerdict extends Row {
  readonly findings: Readonly<Record<TenantColumn, Finding>>;
}

/** What the faults of one tenant change for the others. */
export function judgeTenants(run: TenantRun, limits: TenantLimits): TenantVerdict {
  const { scenario, causing, disturbedAt } = run;
  const without = startedWithin(run.without, disturbedAt, Infinity);
  const beside = startedWithin(run.beside, disturbedAt, Infinity);
  const findings = {
    served: judgeLost(without, beside, limits),
    refused: judgeRefused(beside),
    p50: judgeAdded(run, "p50", limits),
    p99: judgeAdded(run, "p99", limits),
  };
  const notes = [
    ["the others, without it", without],
    ["the others, beside it", beside],
    ["the one that causes the faults", causing],
  ] as const;
  return {
    name: scenario.name,
    findings,
    notes: notes
      .filter(([, some]) => some.some(isFailed))
      .map(([what, some]) => countLine(`${what}, ${some.length} calls`, countFailures(some))),
  };
}

function judgeLost(
  without: readonly Call[],
  beside: readonly Call[],
  { mostLost }: TenantLimits,
): Finding {
  const [shareWithout, shareBeside] = [servedShare(without), servedShare(beside)];
  return {
    isMet: shareWithout - shareBeside <= mostLost,
    text: `${percent(shareBeside)} (without: ${percent(shareWithout)})`,
  };
}

/** Nobody but the one that causes the faults may be told to wait. No calls at all are a failure. */
function judgeRefused(beside: readonly Call[]): Finding {
  const refused = beside.filter(({ failure }) => /^(429|503) /.test(failure)).length;
  return { isMet: beside.length > 0 && refused === 0, text: `${refused} of ${beside.length}` };
}

const parts = { p50: 0.5, p99: 0.99 } as const;

/**
 * What is added must stay below its part, or below what the two gateways differ by without faults:
 * in this run before they began, or usually.
 */
function judgeAdded(run: TenantRun, which: "p50" | "p99", limits: TenantLimits): Finding {
  const { warmedUpAt, disturbedAt } = run;
  const latency = (calls: readonly Call[], from: number, until: number): number =>
    percentile(
      startedWithin(calls, from, until).map(({ latencyMs }) => latencyMs),
      parts[which],
    );
  const without = latency(run.without, disturbedAt, Infinity);
  const addedMs = latency(run.beside, disturbedAt, Infinity) - without;
  const before = [run.beside, run.without].map((calls) => latency(calls, warmedUpAt, disturbedAt));
  const noiseMs = Math.abs((before[0] ?? Number.NaN) - (before[1] ?? Number.NaN));
  const mostMs = Math.max(without * limits.mostAdded, limits.noiseMs[which], noiseMs);
  return {
    isMet: addedMs <= mostMs,
    text: `${signed(addedMs)} ms to ${without.toFixed(1)} (before ${noiseMs.toFixed(1)})`,
  };
}

function servedShare(calls: readonly Call[]): number {
  return 1 - calls.filter(isFailed).length / calls.length;
}

function percent(share: number): string {
  return `${(share * 100).toFixed(2)} %`;
}

function signed(value: number): string {
  return `${value < 0 ? "" : "+"}${value.toFixed(1)}`;
}
