import { describe, expect, test } from "bun:test";
import {
  CapacityWorld,
  isServed,
  placeOf,
  plainPool,
  type Asked,
  type HowToAsk,
  type WorldOptions,
} from "../../../test/support/capacity-world.ts";
import { upstreamOf } from "../../../test/support/pipeline-fixtures.ts";
import type { TokenLimits } from "../../store/limits/limit-store.ts";
import type { PlaceRequest } from "./place.ts";

const both = ["one", "two"];
const waiting: HowToAsk = { at: both, waitMs: 60_000 };

/** Two pools of one place each, both taken. */
function fullWorld(options: WorldOptions = {}) {
  const pools = both.map((name) => ({ ...plainPool, name, maxInFlight: 1 }));
  const world = new CapacityWorld({ pools, ...options });
  const asked = both.map((at) => world.ask({ tokens: 1 }, { at }));
  world.pass(100);
  return { world, places: asked.map(placeOf) };
}

function resultAt({ result }: Asked): number | undefined {
  return result !== undefined && "place" in result ? result.at : undefined;
}

describe("a call that waits in two queues", () => {
  test.each([0, 1])("takes the first place that comes free, at candidate %d", (index) => {
    const { world, places } = fullWorld();
    const call = world.ask({}, waiting);
    expect(both.map((pool) => world.queued("on-demand", pool))).toEqual([1, 1]);
    places[index]?.leave();
    world.pass(0);
    expect(resultAt(call)).toBe(index);
    expect(both.map((pool) => world.queued("on-demand", pool))).toEqual([0, 0]);
    expect(both.map((pool) => world.held("on-demand", pool))).toEqual([1, 1]);
  });

  test("takes one place of two that come free in one turn", () => {
    const { world, places } = fullWorld();
    const call = world.ask({}, waiting);
    for (const place of places) place.leave();
    world.pass(0);
    expect(isServed(call)).toBe(true);
    expect(both.map((pool) => world.held("on-demand", pool))).toEqual([1, 0]);
    placeOf(call).leave();
    expect(both.map((pool) => world.held("on-demand", pool))).toEqual([0, 0]);
  });

  test("is overtaken by no newcomer in any of them", () => {
    const { world, places } = fullWorld();
    const call = world.ask({}, waiting);
    const behind = world.ask({}, waiting);
    places[1]?.leave();
    expect(world.tryAsk({}, "two")).toMatchObject({ busy: "full" });
    world.pass(0);
    expect([isServed(call), isServed(behind)]).toEqual([true, false]);
    places[0]?.leave();
    world.pass(0);
    expect([resultAt(call), resultAt(behind)]).toEqual([1, 0]);
  });

  test.each(["left", "deadline"] as const)("ends in both of them: %s", (busy) => {
    const { world, places } = fullWorld();
    const call = world.ask({}, waiting);
    const behind = world.ask({}, { at: "two", waitMs: 120_000 });
    if (busy === "left") call.leave();
    world.pass(60_000);
    expect(call.result).toMatchObject({ busy, position: 1 });
    expect(world.waits).toMatchObject([{ name: "one", outcome: busy }]);
    for (const place of places) place.leave();
    world.pass(0);
    expect(isServed(behind)).toBe(true);
    expect(both.map((pool) => world.held("on-demand", pool))).toEqual([0, 1]);
  });

  test("stays in one when another is full or its request never fits there", () => {
    const { world, places } = fullWorld({ queueLimit: 1 });
    world.ask({}, { at: "one", waitMs: 60_000 });
    const call = world.ask({}, waiting);
    expect(call.result).toBeUndefined();
    expect(both.map((pool) => world.queued("on-demand", pool))).toEqual([1, 1]);
    places[1]?.leave();
    world.pass(0);
    expect(resultAt(call)).toBe(1);
    const small = { ...plainPool, name: "one", maxInFlight: 1, tokensPerMinute: 50 };
    world.reload([small, { ...plainPool, name: "two", maxInFlight: 1 }]);
    const large = world.ask({ tokens: 60 }, waiting);
    expect(large.result).toBeUndefined();
    placeOf(call).leave();
    world.pass(0);
    expect(resultAt(large)).toBe(1);
  });

  test("is refused when all of them are full", () => {
    const { world } = fullWorld({ queueLimit: 1 });
    for (const at of both) world.ask({}, { at, waitMs: 60_000 });
    expect(world.ask({}, waiting).result).toMatchObject({ busy: "queue-full", position: 2 });
  });

  test("gives back what the store grants in one after it was served in the other", () => {
    const settled: number[] = [];
    const slowly = (store: TokenLimits, time: CapacityWorld["time"]): TokenLimits => ({
      async acquire(request) {
        await time.sleep(10);
        return store.acquire(request);
      },
      settle: (callId, tokens) => {
        settled.push(tokens);
        return store.settle(callId, tokens);
      },
    });
    const { world, places } = fullWorld({ wrap: slowly });
    const call = world.ask({ tokens: 100 }, waiting);
    places[0]?.leave();
    world.pass(5);
    places[1]?.leave();
    world.pass(5);
    expect(resultAt(call)).toBe(0);
    settled.length = 0;
    world.pass(10);
    expect(settled).toEqual([0]);
    expect(both.map((pool) => world.held("on-demand", pool))).toEqual([1, 0]);
    expect(both.map((pool) => world.queued("on-demand", pool))).toEqual([0, 0]);
  });
});

describe("a target at its concurrency limit", () => {
  const at = "upstream:up";
  const upstreams = [upstreamOf("up", { maxInFlight: 100 })];

  /** Forty attempts of one key, and a limit of 32. */
  function limitedWorld() {
    const world = new CapacityWorld({ upstreams });
    const limit = world.limitOf("up/m");
    const places = Array.from({ length: 40 }, () => placeOf(world.ask({}, { at })));
    const now = (): number => world.clock.monotonic();
    for (let count = 0; count < 20; count += 1) limit.overloaded("account", now());
    for (const place of places.splice(0, 8)) place.leave();
    const ask = (wish: Partial<PlaceRequest> = {}, waitMs = 60_000) =>
      world.ask(wish, { at, waitMs });
    return { world, limit, places, now, ask };
  }

  test("gives no place, and the first one that comes free to the call that waits", () => {
    const { world, limit, places, ask } = limitedWorld();
    expect(ask({}, 0).result).toMatchObject({ busy: "limit" });
    const calls = [ask(), ask()];
    expect(limit.inFlight).toBe(32);
    places[0]?.leave();
    expect(ask({}, 0).result).toMatchObject({ busy: "limit" });
    world.pass(0);
    expect(calls.map(isServed)).toEqual([true, false]);
    expect([limit.inFlight, world.requestsAt("up")]).toEqual([32, 32]);
  });

  test("gives each other key its equal part, past calls that wait, and no part to guarantees", () => {
    const { world, limit, ask } = limitedWorld();
    const call = ask();
    expect(isServed(ask({ accountId: "other" }, 0))).toBe(true);
    expect(isServed(ask({ capacityClass: "provisioned" }, 0))).toBe(true);
    expect(isServed(call)).toBe(false);
    expect([limit.inFlight, world.requestsAt("up")]).toEqual([34, 34]);
  });

  test("serves who waits when its limit grows", () => {
    const { world, limit, now, ask } = limitedWorld();
    const calls = [ask(), ask()];
    limit.succeeded("account", now());
    world.pass(0);
    expect(calls.map(isServed)).toEqual([true, false]);
  });

  test("serves who waits when its limit ends, before any newcomer", () => {
    const { world, ask } = limitedWorld();
    world.pass(500);
    const calls = [ask(), ask()];
    world.pass(9_500);
    expect(calls.map(isServed)).toEqual([false, false]);
    expect(isServed(ask({}, 0))).toBe(true);
    world.pass(0);
    expect(calls.map(isServed)).toEqual([true, true]);
  });

  test("serves who waits when its limit ends, within a second, though nobody comes", () => {
    const { world, ask } = limitedWorld();
    const calls = [ask(), ask()];
    world.pass(11_000);
    expect(calls.map(isServed)).toEqual([true, true]);
  });
});

test("a large call of a heavy account is not passed by later calls of another heavy one", () => {
  const pools = [{ ...plainPool, maxInFlight: 1_000 }];
  const world = new CapacityWorld({ pools, queueLimit: 1_000 });
  world.pass(0);
  // Both accounts are above their share of the pool's tokens.
  for (let second = 0; second < 40; second += 1) {
    for (const accountId of ["large", "small"]) world.ask({ tokens: 1_000, accountId });
    world.pass(1_000);
  }
  const large = world.ask({ tokens: 15_000, accountId: "large" }, { waitMs: 600_000 });
  const small: Asked[] = [];
  while (large.endedAt === undefined) {
    small.push(world.ask({ tokens: 1_000, accountId: "small" }, { waitMs: 600_000 }));
    world.pass(500);
  }
  expect([large.endedAt - large.askedAt, small.filter(isServed).length]).toEqual([14_750, 0]);
});

test.each([
  ["at once", (store: TokenLimits): TokenLimits => store],
  ["later", answersLater],
])("tokens that come back serve the waiting call then, if the store answers %s", (_, wrap) => {
  const world = new CapacityWorld({ pools: [{ ...plainPool, tokensPerMinute: 1_000 }], wrap });
  world.pass(0);
  const first = world.ask({ tokens: 900 });
  world.pass(300);
  expect(isServed(first)).toBe(true);
  const second = world.ask({ tokens: 300, accountId: "other" }, { waitMs: 120_000 });
  world.pass(100_000);
  expect(second.endedAt).toBeLessThan(61_020);
});

function answersLater(store: TokenLimits): TokenLimits {
  return {
    acquire: async (request) => store.acquire(request),
    settle: async (callId, tokens) => store.settle(callId, tokens),
  };
}
