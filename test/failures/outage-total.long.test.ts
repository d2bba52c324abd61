import { metricsOf } from "../support/metrics-of.ts";
import { describe, expect, test } from "bun:test";
import type { FaultMode } from "../../simulator/simulator.ts";
import { sendCalls } from "../support/fault-load.ts";
import { startFaultUpstreams } from "../support/fault-upstreams.ts";
import { upstreamKinds, type TestGateway, type UpstreamKind } from "../support/gateway.ts";
import { isComplete, sizeOf } from "../support/requirement.ts";
import { report } from "../support/scorecard.ts";

const perSecond = isComplete ? 500 : 150;
const seconds = sizeOf({ quick: 2, all: 6, measured: 12 });
/** Beyond the first attempt of each call: a fifth of them, and for each target what is below. */
const mostAttemptsPerCall = 1.2;
/** Failures that take a target out, and its floor of retries in ten seconds. */
const failuresToBeOut = 5;
const retryFloor = 10;
/** The fewest calls that are significant, on any machine. */
const leastCalls = 100;
const testTimeoutMs = 120_000;

/** Different outages for each kind, which retries treat alike. */
const outages: Readonly<Record<UpstreamKind, readonly (readonly [FaultMode, number])[]>> = {
  openai: [
    ["overloaded-503", 1],
    ["overloaded-503", 3],
    ["throttle-429-bare", 2],
  ],
  bedrock: [
    ["overloaded-503", 2],
    ["reset-before-headers", 3],
  ],
};

describe.each(upstreamKinds)("behind kind %s:", (kind) => {
  test.each(outages[kind])(
    "retries do not amplify an outage of %s at all of %i targets",
    async (mode, upstreams) => {
      await using world = await startFaultUpstreams({ kind, upstreams });
      for (let index = 0; index < upstreams; index += 1) world.break(index, mode);
      const load = {
        model: "everywhere",
        isStreamed: upstreams === 2,
        perSecond,
        seconds,
        leastCalls,
      };
      const startedAt = Date.now();
      const calls = await sendCalls(world.gateway, load);
      const probes = await probesOf(world.gateway);
      const attempts = world.truth().length - probes;
      const ratio = attempts / calls.length;
      const tens = Math.ceil(
        (Math.max(...calls.map(({ endedAt }) => endedAt)) - startedAt) / 10_000,
      );
      const most =
        mostAttemptsPerCall * calls.length +
        upstreams * (failuresToBeOut + retryFloor * (tens + 1));
      report({
        check: 21,
        name: `attempts per call, ${mode} at all ${upstreams} targets, ${kind}`,
        value: `${ratio.toFixed(3)} (${attempts} for ${calls.length})`,
        limit: `<= ${(most / calls.length).toFixed(3)}`,
        isMet: attempts <= most,
      });
      expect(new Set(calls.map(({ status }) => status))).toEqual(new Set([503]));
      expect(attempts).toBeLessThanOrEqual(most);
      // The ledger has every attempt with its call; probes belong to no call.
      const rows = await world.gateway.usage();
      expect(rows).toHaveLength(calls.length);
      expect(rows.reduce((sum, row) => sum + row.attempts, 0)).toBe(attempts);
      expect(rows.filter(({ outcome, status }) => outcome !== "failed" || status !== 503)).toEqual(
        [],
      );
      for (let index = 0; index < upstreams; index += 1) world.repair(index);
      const after = await sendCalls(world.gateway, {
        ...load,
        perSecond: 20,
        seconds: 1,
        leastCalls: 10,
      });
      expect(after.some(({ isWhole }) => isWhole)).toBe(true);
    },
    testTimeoutMs,
  );
});

async function probesOf({ adminUrl }: Pick<TestGateway, "adminUrl">): Promise<number> {
  const metrics = await metricsOf(adminUrl);
  const counts = metrics.matchAll(/^sluice_target_probes_total\{.*\} (\d+)$/gm);
  return [...counts].reduce((sum, [, count]) => sum + Number(count), 0);
}
