import { percentile } from "../../support/fault-callers.ts";
import { failureNotes, isFailed, startedWithin } from "../grid/verdict.ts";
import type { Call } from "../load/load-plan.ts";
import type { Finding, Row } from "../report/table.ts";
import type { TenantRun } from "./run-scenario.ts";

export const tenantColumns = ["served", "refused", "p50", "p99"] as const;
export type TenantColumn = (typeof tenantColumns)[number];

export interface TenantLimits {
  /** The tolerance of the served share. */
  readonly mostLost: number;
  /** The tolerance, as a part of the latency without the faults. */
  readonly mostAdded: number;
  /** Insignificant differences, which two gateways without faults have too; milliseconds. */
  readonly noiseMs: Readonly<Record<"p50" | "p99", number>>;
  /** For the p99 of the whole time; more if the machine itself is slower. */
  readonly mostAddedP99Ms: number;
}

/**
 * The promise is 1 % of both. Here 1 % of latency is 0.3 ms, less than the difference of two
 * gateways without faults. In eight runs of the scenario `none` on two shared cores they differed
 * by up to 0.5 ms at the p50 and 2.8 ms at the p99, as the median of all blocks of five seconds,
 * and by up to 26 ms at the p99 of the whole time, which one busy second of the machine changes.
 */
export const tenantLimits: TenantLimits = {
  mostLost: 0.01,
  mostAdded: 0.01,
  noiseMs: { p50: 1.5, p99: 5 },
  mostAddedP99Ms: 50,
};

export interface TenantVerdict extends Row {
  readonly findings: Readonly<Record<TenantColumn, Finding>>;
}

/** The effect of one tenant's faults on the others. */
export function judgeTenants(run: TenantRun, limits: TenantLimits): TenantVerdict {
  const { scenario, causing, faultsAt } = run;
  const without = startedWithin(run.without, faultsAt, Infinity);
  const beside = startedWithin(run.beside, faultsAt, Infinity);
  const findings = {
    served: judgeLost(without, beside, limits),
    refused: judgeRefused(beside),
    p50: judgeAdded(run, "p50", limits),
    p99: judgeAdded(run, "p99", limits),
  };
  return { name: scenario.name, findings, notes: tenantNotes({ without, beside, causing }) };
}

export function tenantNotes(run: Pick<TenantRun, "without" | "beside" | "causing">) {
  const { without, beside, causing } = run;
  return failureNotes([
    [`the others, without it, ${without.length} calls`, without],
    [`the others, beside it, ${beside.length} calls`, beside],
    [`the one that causes the faults, ${causing.length} calls`, causing],
  ]);
}

/** The text shows the share beside the tenant with faults, and the share without it. */
export function judgeLost(
  without: readonly Call[],
  beside: readonly Call[],
  { mostLost }: Pick<TenantLimits, "mostLost">,
): Finding {
  const [shareWithout, shareBeside] = [servedShare(without), servedShare(beside)];
  return {
    isMet: shareWithout - shareBeside <= mostLost,
    text: `${percent(shareBeside)} (${percent(shareWithout)})`,
  };
}

/** Only the tenant that causes the faults may get a Retry-After. No calls are a failure. */
export function judgeRefused(beside: readonly Call[]): Finding {
  const refused = beside.filter(({ failure }) => /^(429|503) /.test(failure)).length;
  return { isMet: beside.length > 0 && refused === 0, text: `${refused} of ${beside.length}` };
}

/**
 * Compares the median of the latency added in each block with the largest of: the promise, the
 * usual noise, and the noise of this run (three standard errors of that median). The text shows it,
 * and the added latency of the whole time.
 */
function judgeAdded(run: TenantRun, which: "p50" | "p99", limits: TenantLimits): Finding {
  const { without, beside, faultsAt } = run;
  const addedWithin = (from: number, until: number): Added => {
    const withoutMs = latencyOf(startedWithin(without, from, until), which);
    const besideMs = latencyOf(startedWithin(beside, from, until), which);
    return { withoutMs, addedMs: besideMs - withoutMs };
  };
  const lastAt = Math.max(...without.map(({ startedAt }) => startedAt));
  const blocks: number[] = [];
  for (let from = faultsAt; from < lastAt; from += blockMs) {
    blocks.push(addedWithin(from, from + blockMs).addedMs);
  }
  const middleMs = median(blocks);
  const errorMs = standardErrorOfMedian(blocks);
  const { withoutMs, addedMs } = addedWithin(faultsAt, Infinity);
  const mostMs = Math.max(withoutMs * limits.mostAdded, limits.noiseMs[which], 3 * errorMs);
  const mostInAllMs = which === "p50" ? mostMs : Math.max(limits.mostAddedP99Ms, withoutMs);
  return {
    isMet: middleMs <= mostMs && addedMs <= mostInAllMs,
    text: `${signed(middleMs)} ms (${signed(addedMs)} to ${withoutMs.toFixed(1)})`,
  };
}

/** From the median absolute deviation, as of values with a normal distribution. */
function standardErrorOfMedian(values: readonly number[]): number {
  const middle = median(values);
  const deviation = median(values.map((value) => Math.abs(value - middle)));
  return (1.2533 * 1.4826 * deviation) / Math.sqrt(values.length);
}

/** NaN without values. */
function median(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other);
  const half = (sorted.length - 1) / 2;
  const [low, high] = [sorted[Math.floor(half)], sorted[Math.ceil(half)]];
  return ((low ?? Number.NaN) + (high ?? Number.NaN)) / 2;
}

interface Added {
  readonly withoutMs: number;
  readonly addedMs: number;
}

const parts = { p50: 0.5, p99: 0.99 } as const;
const blockMs = 5_000;

export function latencyOf(calls: readonly Call[], which: "p50" | "p99"): number {
  return percentile(
    calls.map(({ latencyMs }) => latencyMs),
    parts[which],
  );
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
