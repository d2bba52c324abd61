import { expect, test } from "bun:test";
import { CapacityMetrics } from "./capacity-metrics.ts";

const none = { provisioned: 0, spillover: 0, "on-demand": 0 };

test("places and waits are shown by pool and class, and promises that were not kept by model", () => {
  const metrics = new CapacityMetrics();
  const pool = { kind: "pool", name: "shared" } as const;
  metrics.follow(() => [
    { ...pool, inFlight: { ...none, provisioned: 2 }, queued: { ...none, "on-demand": 3 } },
  ]);
  metrics.waited({ pool, capacityClass: "on-demand", outcome: "deadline", waitedMs: 20 });
  metrics.guaranteeBroken("alpha-sonnet-4");
  const lines = metrics.render().split("\n");
  expect(lines).toContain(`sluice_pool_in_flight{pool="pool:shared",class="provisioned"} 2`);
  expect(lines).toContain(`sluice_pool_in_flight{pool="pool:shared",class="on-demand"} 0`);
  expect(lines).toContain(`sluice_pool_queued{pool="pool:shared",class="on-demand"} 3`);
  expect(lines).toContain(
    `sluice_queue_wait_seconds_sum{pool="pool:shared",class="on-demand",outcome="deadline"} 0.02`,
  );
  expect(lines).toContain(`sluice_guarantee_breaches_total{model="alpha-sonnet-4"} 1`);
});
