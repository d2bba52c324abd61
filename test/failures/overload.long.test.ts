import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { cpuMicroseconds, processesOf } from "../../bench/stand/process-usage.ts";
import { isComplete, sizeOf } from "../support/requirement.ts";
import { report } from "../support/scorecard.ts";
import { OverloadBench } from "./overload-bench.ts";
import type { Load, LoadResult } from "./overload-load-result.ts";

const peakMs = isComplete ? 10_000 : 4_000;
const afterMs = isComplete ? 10_000 : 6_000;
/** Enough to keep the gateway busy without delays. */
const busyConnections = 64;
/** More connections than the event loop reads in one turn. */
const manyConnections = 2_000;

/** One overload, with the results of callers with and without a guarantee. */
interface Overload {
  readonly others: LoadResult;
  readonly guaranteed: LoadResult;
  /** Useful answers for each second of the gateway's processor time. */
  readonly perProcessorSecond: number;
  /** The latency of health checks, in milliseconds. */
  readonly healthMs: readonly number[];
}

let bench: OverloadBench;
let peak: LoadResult;
let peakPerProcessorSecond: number;
let obedient: Overload;
let steady: Overload;
let after: LoadResult;
let shed: { readonly onDemand: number; readonly provisioned: number };

beforeAll(async () => {
  bench = await OverloadBench.create();
  const authorization = bench.onDemand;
  const busy = {
    authorization,
    connections: busyConnections,
    manner: { kind: "busy" },
  } as const;
  // Code is slow until it is compiled.
  await bench.load({ ...busy, durationMs: 2_000 });
  const busySeconds = processorTime();
  peak = await only(bench.load({ ...busy, durationMs: peakMs }));
  peakPerProcessorSecond = peak.answered / busySeconds();
  const perSecond = 3 * peak.usefulPerSecond;
  obedient = await overloadUntilRefused(
    (times) => ({ kind: "obedient", callers: Math.round(times * perSecond) }),
    sizeOf({ quick: 6_000, all: 20_000, measured: 60_000 }),
  );
  steady = await overloadUntilRefused(
    (times) => ({ kind: "steady", perSecond: times * perSecond }),
    sizeOf({ quick: 5_000, all: 10_000, measured: 20_000 }),
  );
  after = await only(
    bench.load({
      authorization,
      connections: 500,
      durationMs: afterMs,
      manner: { kind: "steady", perSecond: perSecond / 10 },
    }),
  );
  shed = {
    onDemand: await bench.metric('sluice_shed_calls_total{class="on-demand"}'),
    provisioned: await bench.metric('sluice_shed_calls_total{class="provisioned"}'),
  };
  const results = { peak, obedient: obedient.others, steady: steady.others, after, shed };
  process.stdout.write(`${Bun.inspect(results)}\n`);
}, 400_000);
afterAll(() => bench[Symbol.asyncDispose]());

/** The gateway's processor time from now on, in seconds. */
function processorTime(): () => number {
  const pids = processesOf(bench.gateway.pid);
  const before = cpuMicroseconds(pids);
  return () => (cpuMicroseconds(pids) - before) / 1_000_000;
}

/** The peak is too low if the machine was busy with other work only while it was measured. */
async function overloadUntilRefused(
  mannerOf: (times: number) => Load["manner"],
  durationMs: number,
): Promise<Overload> {
  for (const times of [1, 2]) {
    const result = await overload(mannerOf(times), durationMs);
    if (result.others.refused > 0) return result;
  }
  return overload(mannerOf(4), durationMs);
}

async function overload(manner: Load["manner"], durationMs: number): Promise<Overload> {
  const healthMs: number[] = [];
  const probing = new AbortController();
  const probes = probeHealth(healthMs, probing.signal);
  const seconds = processorTime();
  const [others, guaranteed] = await bench.load(
    { authorization: bench.onDemand, connections: manyConnections, durationMs, manner },
    {
      authorization: bench.provisioned,
      connections: 500,
      durationMs,
      manner: { kind: "steady", perSecond: 0.05 * peak.usefulPerSecond },
    },
  );
  const used = seconds();
  probing.abort();
  await probes;
  if (others === undefined || guaranteed === undefined) throw new Error("there was no load");
  const useful = others.usefulPerSecond + guaranteed.usefulPerSecond;
  const perProcessorSecond = (useful * durationMs) / 1_000 / used;
  return { others, guaranteed, healthMs, perProcessorSecond };
}

async function probeHealth(healthMs: number[], signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const askedAt = performance.now();
    const { status } = await fetch(`${bench.gateway.dataUrl}/healthz`);
    healthMs.push(status === 200 ? performance.now() - askedAt : Number.POSITIVE_INFINITY);
    await Bun.sleep(100);
  }
}

async function only(results: Promise<readonly LoadResult[]>): Promise<LoadResult> {
  const [result] = await results;
  if (result === undefined) throw new Error("there was no load");
  return result;
}

function percent(share: number): string {
  return `${(100 * share).toFixed(0)} %`;
}

describe.each([
  ["callers that obey Retry-After", () => obedient],
  ["callers at a steady rate", () => steady],
] as const)("three times the load, of %s,", (whose, of) => {
  test("leaves the useful work per processor time", () => {
    const { others, guaranteed, perProcessorSecond } = of();
    const useful = others.usefulPerSecond + guaranteed.usefulPerSecond;
    // Other load on the machine affects the measurements differently.
    const share = perProcessorSecond / peakPerProcessorSecond;
    report({
      check: 23,
      name: `3 x the load, ${whose}: goodput by processor time`,
      value:
        `${percent(share)} of the peak ` +
        `(by the clock ${percent(useful / peak.usefulPerSecond)} of ${peak.usefulPerSecond.toFixed(0)}/s)`,
      limit: ">= 80 %",
      isMet: share >= 0.8,
    });
    expect(others.refused).toBeGreaterThan(0);
    expect(others.failed).toBe(0);
    expect(share).toBeGreaterThan(0.5);
  });

  test("refuses no provisioned call", () => {
    const { answered, refused, failed, failures, unsent } = of().guaranteed;
    report({
      check: 23,
      name: `3 x the load, ${whose}: provisioned calls refused or failed`,
      value: `${refused + failed} of ${answered + refused + failed}`,
      limit: 0,
      isMet: refused + failed === 0,
    });
    expect({ refused, failed, failures }).toEqual({ refused: 0, failed: 0, failures: [] });
    expect(answered).toBeGreaterThan(unsent);
  });

  test("does not delay health checks", () => {
    const sorted = of().healthMs.toSorted((one, other) => one - other);
    const p99 = sorted[Math.floor(sorted.length * 0.99)] ?? Number.POSITIVE_INFINITY;
    const slowest = sorted.at(-1) ?? Number.POSITIVE_INFINITY;
    report({
      check: 23,
      name: `3 x the load, ${whose}: health answered, p99`,
      value: `${p99.toFixed(0)} ms (at most ${slowest.toFixed(0)})`,
      limit: "<= 1 s",
      isMet: p99 <= 1_000,
    });
    expect(sorted.length).toBeGreaterThan(5);
    expect(slowest).toBeLessThan(10_000);
  });
});

test("refuses no call later than five seconds after its end", () => {
  report({
    check: 23,
    name: "3 x the load: last refusal after its end",
    value: `${after.lastRefusedMs.toFixed(0)} ms`,
    limit: "<= 5 s",
    isMet: after.lastRefusedMs <= 5_000,
  });
  expect(after.lastRefusedMs).toBeLessThanOrEqual(5_000);
  expect(after.failed).toBe(0);
  expect(after.answered).toBeGreaterThan(0);
});

test("has its refusals in the metrics, by class", () => {
  const refused = obedient.others.refused + steady.others.refused + after.refused;
  expect(shed.onDemand).toBeGreaterThanOrEqual(refused);
  expect(shed.provisioned).toBe(0);
});
