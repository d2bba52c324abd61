import { describe, expect, test } from "bun:test";
import { runFleet, type FleetOptions } from "./fleet.ts";
import { partOf } from "./fleet-worker.ts";

const terms = {
  decisionMs: 0.04,
  settleMs: 0.02,
  includeMs: 0.005,
  batch: 100,
  networkMs: 0.1,
  timeoutMs: 50,
  failures: 5,
  probeMs: 200,
  graceMs: 1_000,
};
const fleet: FleetOptions = {
  seed: 1,
  workers: 20,
  keys: 40,
  callsPerSecond: 400,
  limit: 300,
  seconds: 70,
  isSticky: false,
  terms,
};

test("without a fault, every decision is the server's, and no key exceeds its limit", () => {
  // Three times what the limits allow.
  const result = runFleet({ ...fleet, callsPerSecond: 600 });
  expect(result.local).toBe(0);
  expect(result.worst).toBe(1);
  expect(result.refused).toBeGreaterThan(result.admitted);
});

test("the waits for the server are those of queueing theory", () => {
  const alone = { ...terms, networkMs: 0, settleMs: 0, decisionMs: 1 };
  const { waits, utilisation } = runFleet({
    ...fleet,
    callsPerSecond: 700,
    limit: Infinity,
    seconds: 300,
    terms: alone,
  });
  expect(utilisation).toBeCloseTo(0.7, 1);
  const mean = waits.reduce((sum, wait) => sum + wait, 0) / waits.length;
  // Random arrivals, constant service: 1 + 0.7 / (2 * (1 - 0.7)) ms.
  expect(mean).toBeGreaterThan(2.0);
  expect(mean).toBeLessThan(2.35);
});

describe.each(["frozen", "killed"] as const)("a server that is %s for 30 s", (kind) => {
  const fault = { kind, fromMs: 65_000, untilMs: 95_000 };
  const run = (more: Partial<FleetOptions>) =>
    runFleet({ ...fleet, callsPerSecond: 600, seconds: 200, fault, ...more });

  test("delays no decision beyond the time-out, and all decide together again", () => {
    const { waits, local, recoveryMs } = run({});
    expect(waits.at(-1)).toBeLessThanOrEqual(2 * terms.timeoutMs);
    expect(local).toBeGreaterThan(0);
    expect(recoveryMs).toBeLessThan(2_000);
  });

  test.each([false, true])("lets no key exceed its limit by much; calls stick: %p", (isSticky) => {
    expect(run({ isSticky }).worst).toBeLessThanOrEqual(1.05);
  });
});

test("after a flush, the workers restore what they have admitted", () => {
  const fault = { kind: "flushed", fromMs: 65_000 } as const;
  const spread = runFleet({ ...fleet, callsPerSecond: 600, seconds: 150, fault });
  expect(spread.worst).toBeLessThanOrEqual(1.1);
  const sticky = runFleet({ ...fleet, callsPerSecond: 600, seconds: 150, fault, isSticky: true });
  expect(sticky.worst).toBe(1);
});

test("the parts of all workers are the limit, also below one for each", () => {
  for (const limit of [0, 1, 7, 20, 60, 1_000]) {
    const parts = Array.from({ length: 20 }, (_, turn) => partOf(limit, { workers: 20, turn }));
    expect(parts.reduce((sum, part) => sum + part, 0)).toBe(limit);
  }
});

test("equal seeds give equal results", () => {
  expect(runFleet({ ...fleet, seconds: 5 })).toEqual(runFleet({ ...fleet, seconds: 5 }));
});
