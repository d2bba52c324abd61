import { describe, expect, test } from "bun:test";
import { sendCall, sendCalls } from "../support/fault-load.ts";
import { startFaultUpstreams, type FaultUpstreams } from "../support/fault-upstreams.ts";
import {
  simulatorUpstream,
  targetAt,
  upstreamKinds,
  type UpstreamKind,
} from "../support/gateway.ts";

/**
 * A target that stops answering, with time limits of half a minute: a test that waited for them
 * would time out.
 */
const testTimeoutMs = 25_000;
const hang = { mode: "slow-first-byte", argument: 60_000, times: Infinity } as const;

/** The first target of two has a better priority. */
async function start(kind: UpstreamKind, more = ""): Promise<FaultUpstreams> {
  const world = await startFaultUpstreams({ kind, upstreams: 2 });
  const targets = [1, 2].map((priority) =>
    targetAt(
      kind,
      { model: "simulated-chat", family: "claude-4" },
      `upstream: up${priority - 1}, priority: ${priority}`,
    ),
  );
  const timeouts = "timeouts: { connect: 5s, first_byte: 30s, idle: 30s, total: 60s }";
  await world.gateway.reconfigure({
    upstreams: world.simulators
      .map((simulator, index) => `\n  up${index}: ${simulatorUpstream(simulator, kind, timeouts)}`)
      .join(""),
    models: `
  two:
    kind: chat
    context_window: 200000
    max_output_tokens: 64000
    targets: [${targets.join(", ")}]${more}`,
  });
  return world;
}

describe.each(upstreamKinds)("behind kind %s:", (kind) => {
  test.each([
    ["streams", true],
    ["whole answers", false],
  ] as const)(
    "callers that wait at a target that falls silent are served by another, and it is soon out: %s",
    async (_, isStreamed) => {
      await using world = await start(kind);
      const load = { model: "two", isStreamed, perSecond: 50 };
      const before = await sendCalls(world.gateway, { ...load, seconds: 0.5, leastCalls: 20 });
      expect(before.every(({ isWhole }) => isWhole)).toBe(true);
      world.simulators[0]?.setFaultPlan([hang]);
      const asked = world.simulators[0]?.truth.size ?? 0;
      const calls = await sendCalls(world.gateway, { ...load, seconds: 3, leastCalls: 100 });
      expect(calls.filter(({ isWhole }) => !isWhole)).toEqual([]);
      const since = (world.simulators[0]?.truth.size ?? 0) - asked;
      expect(since).toBeLessThan(calls.length / 2);
      expect(world.gateway.log.join("\n")).toContain("at last: silent");
      world.repair(0);
      const after = await untilServedBy(world, isStreamed);
      expect(after).toBe(true);
    },
    testTimeoutMs,
  );

  test.each([
    ["", "without a hedge"],
    ["\n    hedge_after: 100ms", "with hedges, of which there are few"],
  ])(
    "callers that wait at a silent target are served though nobody calls after them: %p (%s)",
    async (more) => {
      await using world = await start(kind, more);
      const load = { model: "two", isStreamed: true, perSecond: 50, seconds: 0.5, leastCalls: 20 };
      await sendCalls(world.gateway, load);
      world.simulators[0]?.setFaultPlan([hang]);
      const waiting = Array.from({ length: 30 }, (_, index) =>
        sendCall(world.gateway, load, `waiting-${index}`),
      );
      const calls = await Promise.all(waiting);
      expect(calls.filter(({ isWhole }) => !isWhole)).toEqual([]);
    },
    testTimeoutMs,
  );
});

/** Whether the first target serves again before the test is over. */
async function untilServedBy(world: FaultUpstreams, isStreamed: boolean): Promise<boolean> {
  const { truth } = world.simulators[0] ?? { truth: { size: 0 } };
  for (let time = 0; time < 200; time += 1) {
    const asked = truth.size;
    const load = { model: "two", isStreamed, perSecond: 20, seconds: 0.2, leastCalls: 4 };
    const calls = await sendCalls(world.gateway, load);
    if (calls.some(({ isWhole }) => !isWhole)) return false;
    if (truth.size - asked >= calls.length) return true;
  }
  return false;
}
