import { describe, expect, test } from "bun:test";
import { recordOf } from "../../../test/contracts/usage-fixtures.ts";
import { pageOf } from "../../../test/support/metrics-page.ts";
import type { AttemptOutcome } from "../../domain/usage/call-routing.ts";
import { Metrics } from "./metrics.ts";

const none = { provisioned: 0, spillover: 0, "on-demand": 0 };

test("slots and waits are shown by pool and class", () => {
  const metrics = new Metrics({});
  const pool = { kind: "pool", name: "shared" } as const;
  metrics.follow({
    pools: () => [
      { ...pool, inFlight: { ...none, provisioned: 2 }, queued: { ...none, "on-demand": 3 } },
    ],
  });
  metrics.waited({ pool, capacityClass: "on-demand", outcome: "deadline", waitedMs: 20 });
  const lines = pageOf(metrics).split("\n");
  expect(lines).toContain(`sluice_pool_in_flight{pool="pool:shared",class="provisioned"} 2`);
  expect(lines).toContain(`sluice_pool_in_flight{pool="pool:shared",class="on-demand"} 0`);
  expect(lines).toContain(`sluice_pool_queued{pool="pool:shared",class="on-demand"} 3`);
  expect(lines).toContain(
    `sluice_queue_wait_seconds_sum{pool="pool:shared",class="on-demand",outcome="deadline"} 0.02`,
  );
});

describe("a broken guarantee", () => {
  const candidates = [{ target: "east/m", model: "alpha-sonnet-4", why: "priority 1" }];
  const after = (...outcomes: readonly AttemptOutcome[]) => ({
    candidates,
    attempts: outcomes.map((outcome) => ({
      target: "east/m",
      model: "alpha-sonnet-4",
      startMs: 0,
      durationMs: 1,
      outcome,
      mayBeBilled: false,
    })),
  });
  const failed = { capacityClass: "provisioned", status: 503, outcome: "failed" } as const;

  function isCounted(values: Parameters<typeof recordOf>[1]): boolean {
    const metrics = new Metrics({});
    metrics.callEnded(recordOf("req_1", values));
    const line = `sluice_guarantee_breaches_total{model="alpha-sonnet-4"} 1`;
    return pageOf(metrics).split("\n").includes(line);
  }

  test("is a provisioned call whose targets all failed or were busy", () => {
    expect(isCounted({ ...failed, routing: after("unavailable", "throttled") })).toBe(true);
    expect(isCounted({ ...failed, attempts: 0, routing: after() })).toBe(true);
  });

  test("is not a call that was cut off, refused before routing, or not provisioned", () => {
    expect(isCounted({ ...failed, routing: after("unavailable", "given-up") })).toBe(false);
    expect(isCounted({ ...failed, attempts: 0, routing: undefined })).toBe(false);
    expect(isCounted({ ...failed, status: 200, routing: after("unavailable", "answered") })).toBe(
      false,
    );
    const spilled = {
      ...failed,
      capacityClass: "spillover",
      routing: after("unavailable"),
    } as const;
    expect(isCounted(spilled)).toBe(false);
  });
});

function keyLines(metrics: Metrics): readonly string[] {
  const lines = pageOf(metrics).split("\n");
  return lines.filter((line) => line.startsWith("sluice_key_requests_total"));
}

test("requests of a key are counted by whose matter the answer was", () => {
  const metrics = new Metrics({});
  for (const status of [200, 200, 302, 400, 401, 429, 499, 500, 503]) {
    metrics.keyAnswered("key_1", status);
  }
  const counts = keyLines(metrics).map((line) => /answer="(\w+)"\} (\d+)/.exec(line)?.slice(1));
  expect(counts).toEqual([
    ["ok", "3"],
    ["refused", "2"],
    ["limited", "1"],
    ["left", "1"],
    ["failed", "2"],
  ]);
});

test("keys beyond the thousandth are counted together", () => {
  const metrics = new Metrics({});
  for (let key = 0; key < 1_500; key += 1) metrics.keyAnswered(`key_${key}`, 200);
  metrics.keyAnswered("key_0", 200);
  const lines = keyLines(metrics);
  expect(lines).toHaveLength(1_001);
  expect(lines).toContain('sluice_key_requests_total{key="key_0",answer="ok"} 2');
  expect(lines).toContain('sluice_key_requests_total{key="other",answer="ok"} 500');
});
