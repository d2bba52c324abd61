import { describe, expect, test } from "bun:test";
import { sendCalls } from "../support/fault-load.ts";
import { startFaultUpstreams } from "../support/fault-upstreams.ts";
import { upstreamKinds } from "../support/gateway.ts";
import { isComplete } from "../support/requirement.ts";
import { report } from "../support/scorecard.ts";

const perSecond = isComplete ? 500 : 150;
const seconds = isComplete ? 12 : 2;
const mostAttemptsPerCall = 1.2;
/** Fewer would prove nothing, however slow the machine is. */
const leastCalls = 100;
const testTimeoutMs = 120_000;

describe.each(upstreamKinds)("behind kind %s:", (kind) => {
  test.each([
    ["overloaded-503", 1],
    ["overloaded-503", 2],
    ["overloaded-503", 3],
    ["reset-before-headers", 3],
    ["throttle-429-bare", 2],
  ] as const)(
    "an outage of %s at all of %i targets is not made worse by retries",
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
      const calls = await sendCalls(world.gateway, load);
      const attempts = world.truth().length;
      const ratio = attempts / calls.length;
      report({
        check: 21,
        name: `attempts per call, ${mode} at all ${upstreams} targets, ${kind}`,
        value: `${ratio.toFixed(3)} (${attempts} for ${calls.length})`,
        limit: `<= ${mostAttemptsPerCall}`,
        isMet: ratio <= mostAttemptsPerCall,
      });
      expect(new Set(calls.map(({ status }) => status))).toEqual(new Set([503]));
      expect(ratio).toBeLessThanOrEqual(mostAttemptsPerCall);
      // Every attempt is in the ledger, with its call.
      const rows = await world.gateway.usage();
      expect(rows).toHaveLength(calls.length);
      expect(rows.reduce((sum, row) => sum + row.attempts, 0)).toBe(attempts);
      expect(rows.filter(({ outcome, status }) => outcome !== "failed" || status !== 503)).toEqual(
        [],
      );
      for (let index = 0; index < upstreams; index += 1) world.mend(index);
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
