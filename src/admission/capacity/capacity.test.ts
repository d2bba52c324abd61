import { describe, expect, test } from "bun:test";
import {
  CapacityWorld,
  isServed,
  placeOf,
  plainPool,
} from "../../../test/support/capacity-world.ts";
import { upstreamOf } from "../../../test/support/pipeline-fixtures.ts";
import type { TokenLimits } from "../../store/limits/limit-store.ts";
import type { Place, PlaceRequest } from "./place.ts";

const upstream = upstreamOf("up", { maxInFlight: 2 });
const atUpstream = { at: "upstream:up" };

describe("places", () => {
  describe("an upstream without a pool", () => {
    test("has its places for all classes, and answers at once", () => {
      const world = new CapacityWorld({ upstreams: [upstream] });
      const first = placeOf(world.tryAsk({ capacityClass: "spillover" }, atUpstream.at));
      placeOf(world.tryAsk({ tokens: 1e9 }, atUpstream.at));
      const third = world.tryAsk({ capacityClass: "provisioned" }, atUpstream.at);
      expect(third).toMatchObject({ busy: "full", retryAfterMs: 1_000, position: undefined });
      first.leave();
      expect(placeOf(world.tryAsk({}, atUpstream.at)).waitedMs).toBe(0);
      expect(world.store.scopeCount).toBe(0);
    });

    test("takes back a place once, even if it is left twice", () => {
      const world = new CapacityWorld({ upstreams: [upstream] });
      const place = placeOf(world.tryAsk({}, atUpstream.at));
      placeOf(world.tryAsk({}, atUpstream.at));
      place.leave();
      place.leave();
      placeOf(world.tryAsk({}, atUpstream.at));
      expect(world.tryAsk({}, atUpstream.at)).toMatchObject({ busy: "full" });
    });

    test("that gets more places serves waiting calls, and with fewer cuts no call", () => {
      const world = new CapacityWorld({ upstreams: [upstream] });
      const held = [1, 2].map(() => placeOf(world.ask({}, atUpstream)));
      const waiting = world.ask({}, { ...atUpstream, waitMs: 60_000 });
      world.reload([], [upstreamOf("up", { maxInFlight: 3 })]);
      world.pass(0);
      expect(isServed(waiting)).toBe(true);
      world.reload([], [upstreamOf("up", { maxInFlight: 1 })]);
      held[0]?.leave();
      held[1]?.leave();
      expect(world.tryAsk({}, atUpstream.at)).toMatchObject({ busy: "full" });
      placeOf(waiting).leave();
      placeOf(world.tryAsk({}, atUpstream.at));
    });
  });

  describe("the places of a pool", () => {
    test("are all for guarantees, and for others except the reserved ones", () => {
      const world = new CapacityWorld();
      world.sell(50);
      // 50 units hold 50,848 of 100,000 tokens, so 6 of 10 places.
      const open = [1, 2, 3, 4].map(() => placeOf(world.tryAsk({ tokens: 1 })));
      expect(world.tryAsk({ tokens: 1 })).toMatchObject({ busy: "full" });
      expect(world.tryAsk({ capacityClass: "spillover", tokens: 1 })).toMatchObject({
        busy: "full",
      });
      const own = [1, 2, 3, 4, 5, 6].map(() =>
        placeOf(world.tryAsk({ capacityClass: "provisioned" })),
      );
      expect(world.tryAsk({ capacityClass: "provisioned" })).toMatchObject({ busy: "full" });
      open[0]?.leave();
      own.push(placeOf(world.tryAsk({ capacityClass: "provisioned" })));
      expect([world.held("provisioned"), world.held("on-demand")]).toEqual([7, 3]);
      expect(world.tryAsk({ tokens: 1 })).toMatchObject({ busy: "full" });
    });

    test("of a dedicated pool are only for guarantees, and no other call waits for one", () => {
      const world = new CapacityWorld({ pools: [{ ...plainPool, kind: "dedicated" }] });
      for (const capacityClass of ["spillover", "on-demand"] as const) {
        const asked = world.ask({ capacityClass }, { waitMs: 10_000 });
        expect(asked.result).toMatchObject({ busy: "full", retryAfterMs: Infinity });
      }
      placeOf(world.ask({ capacityClass: "provisioned" }));
    });

    test("without a limit are bounded by tokens alone", () => {
      const world = new CapacityWorld({ pools: [{ ...plainPool, maxInFlight: undefined }] });
      for (let count = 0; count < 800; count++) placeOf(world.tryAsk({ tokens: 100 }));
      expect(world.tryAsk({ tokens: 1 })).toMatchObject({ busy: "tokens" });
      expect(world.held("on-demand")).toBe(800);
    });
  });

  describe("the places that units guarantee to a key", () => {
    const large: Partial<PlaceRequest> = { accountId: "large", capacityClass: "provisioned" };
    const small: Partial<PlaceRequest> = { accountId: "small", capacityClass: "provisioned" };
    const pool = { ...plainPool, maxInFlight: 20 };

    function worldOfTwo(): CapacityWorld {
      const world = new CapacityWorld({ pools: [pool] });
      world.sell(5, { key: "small" });
      world.sell(50, { key: "large" });
      return world;
    }

    test("are free at once, though another key has taken all that it could get", () => {
      const world = worldOfTwo();
      // One place is its own, nine are unsold, ten are the other's.
      const taken = Array.from({ length: 40 }, () => world.ask(small)).filter(isServed);
      expect(taken).toHaveLength(10);
      expect(world.tryAsk({ tokens: 1 })).toMatchObject({ busy: "full" });
      for (let count = 0; count < 10; count += 1) placeOf(world.tryAsk(large));
      expect(world.tryAsk(large)).toMatchObject({ busy: "full" });
      expect(world.held("provisioned")).toBe(20);
    });

    test("are no other key's to wait for, and no call waits behind others for them", () => {
      const world = worldOfTwo();
      for (let count = 0; count < 10; count += 1) placeOf(world.tryAsk(small));
      const waiting = world.ask(small, { waitMs: 60_000 });
      const own = placeOf(world.tryAsk(large));
      own.leave();
      world.pass(1_000);
      expect(isServed(waiting)).toBe(false);
      expect(isServed(world.ask(large))).toBe(true);
    });

    test("follow the units that are sold: given back they are open to all", () => {
      const world = worldOfTwo();
      for (let count = 0; count < 10; count += 1) placeOf(world.tryAsk(small));
      const waiting = world.ask(small, { waitMs: 60_000 });
      world.sell(0, { key: "large" });
      world.capacity.unitsChanged();
      world.pass(0);
      expect(isServed(waiting)).toBe(true);
      // Sold anew, they come back as places are given back, and no call is cut.
      world.sell(50, { key: "large" });
      world.capacity.unitsChanged();
      expect(world.held("provisioned")).toBe(11);
      for (let count = 0; count < 9; count += 1) placeOf(world.tryAsk(large));
      const last = world.ask(large, { waitMs: 60_000 });
      expect(last.result).toBeUndefined();
      placeOf(waiting).leave();
      world.pass(0);
      expect(isServed(last)).toBe(true);
    });

    test("leave one place to other calls where more units are sold than there are", () => {
      const world = new CapacityWorld({ pools: [{ ...plainPool, maxInFlight: 2 }] });
      world.sell(200, { key: "large" });
      placeOf(world.tryAsk(small));
      expect(world.tryAsk(small)).toMatchObject({ busy: "full" });
    });

    test("and turns by units let a burst of 400 calls fail none of 32 of a key with ten times as many", () => {
      const world = new CapacityWorld({ pools: [{ ...pool, maxInFlight: 22 }], queueLimit: 1_000 });
      world.sell(5, { key: "small" });
      world.sell(50, { key: "large" });
      const hold = (place: Place): void => {
        world.time.schedule(() => place.leave(), 120);
      };
      const how = { waitMs: 2_000, onPlace: hold };
      const burst = Array.from({ length: 400 }, () => world.ask(small, how));
      const calls = Array.from({ length: 32 }, () => world.ask(large, how));
      world.pass(10_000);
      expect(calls.filter(isServed)).toHaveLength(32);
      // The burst gets all that is left, though not in the time that it waits.
      expect(burst.filter(isServed).length).toBeGreaterThan(100);
    });
  });

  describe("the tokens of a pool", () => {
    test("that are not sold bound spilled calls and calls on demand together", () => {
      const world = new CapacityWorld();
      world.sell(50);
      placeOf(world.tryAsk({ tokens: 20_000 }));
      placeOf(world.tryAsk({ capacityClass: "spillover", tokens: 19_000 }));
      world.pass(60_999);
      expect(world.tryAsk({ tokens: 10_153 })).toMatchObject({ busy: "tokens" });
      placeOf(world.tryAsk({ tokens: 10_151 }));
      expect(world.tryAsk({ capacityClass: "spillover", tokens: 2 })).toMatchObject({
        busy: "tokens",
      });
      placeOf(world.tryAsk({ capacityClass: "provisioned", tokens: 90_000 }));
    });

    test("are given back by what was settled, and by all of what was left unsettled", () => {
      const world = new CapacityWorld();
      const used = placeOf(world.tryAsk({ tokens: 40_000 }));
      const unused = placeOf(world.tryAsk({ tokens: 40_000 }));
      used.settle(10_000);
      used.settle(0);
      used.leave();
      unused.leave();
      world.pass(60_999);
      expect(world.tryAsk({ tokens: 90_001 })).toMatchObject({ busy: "tokens" });
      placeOf(world.tryAsk({ tokens: 89_999 }));
    });

    test("do not take two reservations of one call for the same", () => {
      const world = new CapacityWorld();
      const [first, second] = [1, 2].map(() =>
        placeOf(world.tryAsk({ callId: "a", tokens: 40_000 })),
      );
      first?.settle(40_000);
      second?.settle(10_000);
      world.pass(60_999);
      expect(world.tryAsk({ tokens: 50_001 })).toMatchObject({ busy: "tokens" });
      placeOf(world.tryAsk({ tokens: 49_999 }));
    });

    test("that units are sold of are gone at once, and back when they are given back", () => {
      const world = new CapacityWorld();
      placeOf(world.tryAsk({ tokens: 30_000 }));
      world.sell(70);
      expect(world.tryAsk({ tokens: 1 })).toMatchObject({ busy: "tokens" });
      const waiting = world.ask({ tokens: 1_000 }, { waitMs: 50_000 });
      world.pass(10);
      expect(waiting.result).toBeUndefined();
      world.sell(0);
      world.capacity.unitsChanged();
      world.pass(0);
      expect(isServed(waiting)).toBe(true);
    });

    test("that no call could ever have keep no call waiting, neither at first nor later", () => {
      const world = new CapacityWorld();
      const huge = world.ask({ tokens: 100_001 }, { waitMs: 60_000 });
      expect(huge.result).toMatchObject({ busy: "tokens", retryAfterMs: Infinity });
      placeOf(world.tryAsk({ tokens: 79_000 }));
      const large = world.ask({ tokens: 50_000 }, { waitMs: 500_000 });
      const small = world.ask({ tokens: 40_000, accountId: "other" }, { waitMs: 500_000 });
      expect([large.result, small.result]).toEqual([undefined, undefined]);
      world.reload([{ ...plainPool, tokensPerMinute: 40_000 }]);
      world.pass(61_000);
      expect(large.result).toMatchObject({ busy: "tokens", retryAfterMs: Infinity });
      expect(isServed(small)).toBe(true);
    });
  });

  describe("the queue of a pool", () => {
    test("serves as soon as a place is given back, and returns position and wait", () => {
      const world = new CapacityWorld({ pools: [{ ...plainPool, maxInFlight: 1 }] });
      const holder = placeOf(world.ask());
      const waiting = [1, 2].map(() => world.ask({}, { waitMs: 5_000 }));
      world.pass(1_200);
      holder.leave();
      world.pass(0);
      expect(waiting.map(isServed)).toEqual([true, false]);
      const [first] = waiting;
      expect(first && placeOf(first)).toMatchObject({ waitedMs: 1_200, position: 1 });
      world.pass(3_800);
      expect(waiting[1]?.result).toMatchObject({ busy: "deadline", position: 2, waitedMs: 5_000 });
      expect(world.waits.map(({ outcome }) => outcome)).toEqual(["served", "deadline"]);
    });

    test("serves when tokens come back with time, or from a call that used less than reserved", () => {
      const world = new CapacityWorld();
      const holder = placeOf(world.ask({ tokens: 90_000 }));
      const waiting = [20_000, 40_000].map((tokens) => world.ask({ tokens }, { waitMs: 90_000 }));
      world.pass(5_000);
      expect(waiting.map(isServed)).toEqual([false, false]);
      holder.settle(60_000);
      world.pass(0);
      expect(waiting.map(isServed)).toEqual([true, false]);
      world.pass(55_999);
      expect(waiting.map(isServed)).toEqual([true, false]);
      world.pass(1);
      expect(waiting.map(isServed)).toEqual([true, true]);
    });

    test("lets only a guarantee pass, not a smaller call that comes later", () => {
      const world = new CapacityWorld();
      placeOf(world.ask({ tokens: 90_000 }));
      world.ask({ tokens: 20_000 }, { waitMs: 90_000 });
      expect(world.tryAsk({ tokens: 1 })).toMatchObject({ busy: "tokens" });
      placeOf(world.tryAsk({ capacityClass: "provisioned", tokens: 20_000 }));
    });

    test("gives a place that comes free to a guarantee first", () => {
      const world = new CapacityWorld({ pools: [{ ...plainPool, maxInFlight: 2 }] });
      const holders = [1, 2].map(() => placeOf(world.ask()));
      const open = world.ask({}, { waitMs: 5_000 });
      const guaranteed = world.ask({ capacityClass: "provisioned" }, { waitMs: 5_000 });
      holders[0]?.leave();
      world.pass(0);
      expect([isServed(open), isServed(guaranteed)]).toEqual([false, true]);
      expect(placeOf(guaranteed).position).toBe(1);
    });

    test("is left at once by a caller that leaves, without a place", () => {
      const world = new CapacityWorld({ pools: [{ ...plainPool, maxInFlight: 1 }] });
      const holder = placeOf(world.ask());
      const [gone, next] = [1, 2].map(() => world.ask({}, { waitMs: 5_000 }));
      gone?.leave();
      world.pass(0);
      expect(gone?.result).toMatchObject({ busy: "left" });
      expect(world.queued("on-demand")).toBe(1);
      holder.leave();
      world.pass(0);
      expect(next !== undefined && isServed(next)).toBe(true);
      expect(world.held("on-demand")).toBe(1);
    });

    test("serves the calls behind when the first one has left", () => {
      const world = new CapacityWorld();
      placeOf(world.ask({ tokens: 70_000 }));
      const large = world.ask({ tokens: 40_000 }, { waitMs: 50_000 });
      const small = world.ask({ tokens: 5_000 }, { waitMs: 50_000 });
      expect(small.result).toBeUndefined();
      large.leave();
      world.pass(0);
      expect(isServed(small)).toBe(true);
    });

    test("takes no call whose wait is 0", () => {
      const world = new CapacityWorld({ pools: [{ ...plainPool, maxInFlight: 1 }] });
      placeOf(world.ask());
      expect(world.ask().result).toMatchObject({ busy: "full", waitedMs: 0 });
      expect(world.queued("on-demand")).toBe(0);
      expect(world.waits).toEqual([]);
    });

    test("refuses calls when it is full", () => {
      const world = new CapacityWorld({ queueLimit: 1, pools: [{ ...plainPool, maxInFlight: 1 }] });
      placeOf(world.ask());
      const first = world.ask({}, { waitMs: 5_000 });
      const second = world.ask({}, { waitMs: 5_000 });
      expect(second.result).toMatchObject({ busy: "queue-full", position: 2, waitedMs: 0 });
      expect(first.result).toBeUndefined();
    });
  });

  describe("an account that has had more than its share", () => {
    test("waits while lighter ones pass, even new ones, but never its own calls", () => {
      const world = new CapacityWorld();
      placeOf(world.tryAsk({ accountId: "heavy", tokens: 85_000 }));
      const heavy = world.ask({ accountId: "heavy", tokens: 10_000 }, { waitMs: 60_000 });
      expect(heavy.result).toBeUndefined();
      placeOf(world.tryAsk({ accountId: "light", tokens: 1_000 }));
      expect(world.tryAsk({ accountId: "heavy", tokens: 0 })).toMatchObject({ busy: "tokens" });
      const late = world.ask({ accountId: "heavy", tokens: 0 }, { waitMs: 60_000 });
      expect([heavy.result, late.result]).toEqual([undefined, undefined]);
      const waiting = world.ask({ accountId: "other", tokens: 1_000 }, { waitMs: 60_000 });
      expect(isServed(waiting)).toBe(true);
      world.pass(61_000);
      expect([isServed(heavy), isServed(late)]).toEqual([true, true]);
    });
  });

  test("a served call leaves no timer behind", () => {
    const world = new CapacityWorld({ pools: [{ ...plainPool, maxInFlight: 1 }] });
    const holder = placeOf(world.ask());
    const waiting = world.ask({}, { waitMs: 60_000 });
    holder.leave();
    world.pass(0);
    expect(isServed(waiting)).toBe(true);
    placeOf(waiting).leave();
    // Others are told that places are plenty again.
    world.pass(2_000);
    const { steps } = world.time;
    world.pass(120_000);
    // The end of the time that passed is a step itself.
    expect(world.time.steps).toBe(steps + 1);
  });

  describe("a store that answers later", () => {
    const slowly =
      (answerMs: number, fails = false) =>
      (store: TokenLimits, time: CapacityWorld["time"]): TokenLimits => ({
        async acquire(request) {
          await time.sleep(answerMs);
          if (fails) throw new Error("the store is unavailable");
          return store.acquire(request);
        },
        settle: (callId, tokens) => store.settle(callId, tokens),
      });

    test("serves one after the other, and gives back the place of a caller that leaves", () => {
      const world = new CapacityWorld({ wrap: slowly(10) });
      const first = world.ask({ tokens: 60_000 });
      world.pass(10);
      const waiting = [30_000, 30_000].map((tokens) =>
        world.ask({ tokens, accountId: "other" }, { waitMs: 90_000 }),
      );
      world.pass(100);
      expect([isServed(first), ...waiting.map(isServed)]).toEqual([true, true, false]);
      placeOf(first).settle(0);
      // The request to the store for the second one is pending when it leaves.
      world.pass(5);
      waiting[1]?.leave();
      world.pass(20);
      expect(waiting[1]?.result).toMatchObject({ busy: "left" });
      expect(world.held("on-demand")).toBe(2);
      const rest = world.ask({ tokens: 50_000 });
      world.pass(20);
      expect(isServed(rest)).toBe(true);
    });

    test("and has no tokens gives the place to a guarantee that came for it meanwhile", () => {
      const world = new CapacityWorld({
        wrap: slowly(10),
        pools: [{ ...plainPool, maxInFlight: 2 }],
      });
      useElsewhere(world, 60_000);
      const [first] = [1, 2].map(() => world.ask({ tokens: 1 }));
      world.pass(10);
      const large = world.ask({ tokens: 50_000 }, { waitMs: 60_000 });
      if (first !== undefined) placeOf(first).leave();
      // The place is held for the large one until the store has answered.
      world.pass(5);
      const guaranteed = world.ask({ capacityClass: "provisioned" }, { waitMs: 60_000 });
      expect(guaranteed.result).toBeUndefined();
      world.pass(5);
      expect(large.result).toBeUndefined();
      expect(isServed(guaranteed)).toBe(true);
    });

    test("is asked again at once when its answer was outdated on arrival", () => {
      let answers = 0;
      const world = new CapacityWorld({
        wrap: (store, time) => ({
          async acquire(request) {
            const decision = store.acquire(request);
            await time.sleep(10);
            answers += 1;
            return decision;
          },
          settle: (callId, tokens) => store.settle(callId, tokens),
        }),
      });
      useElsewhere(world, 60_000);
      const holder = world.ask({ tokens: 20_000 });
      world.pass(10);
      const waiting = world.ask({ tokens: 40_000 }, { waitMs: 60_000 });
      // Refused at first, and asked for again from the queue.
      world.pass(15);
      placeOf(holder).settle(0);
      world.pass(5);
      expect([waiting.result, answers]).toEqual([undefined, 3]);
      world.pass(10);
      expect(isServed(waiting)).toBe(true);
    });

    test("and has no tokens is asked again when they are back", () => {
      const world = new CapacityWorld({ wrap: slowly(10) });
      world.pass(500);
      useElsewhere(world, 60_000);
      const waiting = world.ask({ tokens: 50_000 }, { waitMs: 90_000 });
      // The slot in which they were used is over, and the store answers.
      world.pass(60_500 + 20);
      expect(isServed(waiting)).toBe(true);
    });

    test("and fails leaves no place taken", async () => {
      const world = new CapacityWorld({ wrap: slowly(10, true) });
      const entering = Promise.resolve(world.tryAsk());
      entering.catch(() => undefined);
      world.pass(10);
      expect(String(await entering.catch((error: unknown) => error))).toContain(
        "the store is unavailable",
      );
      expect(world.held("on-demand")).toBe(0);
    });
  });

  /** Another process uses tokens of the pool. */
  function useElsewhere({ store }: CapacityWorld, tokens: number): void {
    const scope = { id: "pool:shared", unit: "tokens", window: "minute", limit: 100_000 } as const;
    store.acquire({ callId: "elsewhere", scopes: [scope], tokens });
  }

  test("pools and upstreams that are neither configured nor in use are removed", () => {
    const world = new CapacityWorld();
    const place = placeOf(world.ask());
    world.reload([]);
    expect(world.capacity.views().map(({ name }) => name)).toEqual(["shared"]);
    place.leave();
    world.reload([]);
    expect(world.capacity.views()).toEqual([]);
  });
});
