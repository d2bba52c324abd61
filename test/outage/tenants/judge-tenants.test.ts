import { expect, test } from "bun:test";
import type { Call } from "../load/load-plan.ts";
import { judgeTenants, tenantColumns, tenantLimits, type TenantColumn } from "./judge-tenants.ts";
import { allScenarios } from "./scenarios.ts";

const [scenario] = allScenarios();
const faultsAt = 6_000;
const callCount = 47 * 78;

/** Latencies from 20 to 30 ms; `differ` changes the calls that a test is about. */
function callsOf(differ: (index: number) => Partial<Call> = () => ({})): readonly Call[] {
  return Array.from({ length: callCount }, (_, index) => ({
    startedAt: (index * 1000) / 47,
    latencyMs: 20 + (index % 11),
    servedBy: "upstream-0",
    failure: "",
    ...differ(index),
  }));
}

function broken(beside: readonly Call[], without = callsOf()): readonly TenantColumn[] {
  if (scenario === undefined) throw new Error("no scenario");
  const run = { scenario, faultsAt, without, beside, causing: [] };
  const { findings } = judgeTenants(run, tenantLimits);
  return tenantColumns.filter((column) => !findings[column].isMet);
}

const failing =
  (every: number, failure: string) =>
  (index: number): Partial<Call> =>
    index % every === 0 ? { failure } : {};

test("two gateways with equal results pass", () => {
  expect(broken(callsOf())).toEqual([]);
});

test("more than 1 % of unserved calls breaks the promise", () => {
  expect(broken(callsOf(failing(110, "stream without [DONE]")))).toEqual([]);
  expect(broken(callsOf(failing(50, "stream without [DONE]")))).toEqual(["served"]);
});

test("calls that are not served without the faults either do not count", () => {
  const failed = callsOf(failing(20, "stream without [DONE]"));
  expect(broken(failed, failed)).toEqual([]);
});

test("one refused call of another tenant breaks the promise", () => {
  const one = (failure: string) => callsOf(failing(callCount - 1, failure));
  expect(broken(one("503 model_unavailable"))).toEqual(["refused"]);
  expect(broken(one("429 rate_limit_exceeded"))).toEqual(["refused"]);
  expect(broken(one("500 internal_error"))).toEqual([]);
});

test("no calls at all keep no promise", () => {
  expect(broken([]).toSorted()).toEqual(["p50", "p99", "refused", "served"]);
});

test("permanently added latency breaks the promise", () => {
  const later = callsOf((index) => ({ latencyMs: 22 + (index % 11) }));
  expect(broken(later)).toEqual(["p50"]);
  const tail = callsOf((index) => (index % 40 === 0 ? { latencyMs: 60 } : {}));
  expect(broken(tail)).toEqual(["p99"]);
});

test("one slow second of the machine breaks no promise, many do", () => {
  const slowFor =
    (everySeconds: number) =>
    (index: number): Partial<Call> =>
      Math.floor(index / 47) % everySeconds === 8 ? { latencyMs: 500 } : {};
  const once = callsOf((index) =>
    Math.floor(index / 47) === 8 && index % 2 ? { latencyMs: 500 } : {},
  );
  expect(broken(once)).toEqual([]);
  expect(broken(callsOf(slowFor(30)))).toEqual(["p99"]);
});

test("blocks that differ widely in both directions are not significant", () => {
  const noisy = (factor: number) =>
    callsOf((index) => {
      const block = Math.floor((index / 47 - 6) / 5);
      return index % 40 === 0 ? { latencyMs: 40 + 15 * ((block * factor) % 10) } : {};
    });
  expect(broken(noisy(7), noisy(3))).toEqual([]);
  expect(broken(noisy(3), noisy(7))).toEqual([]);
});
