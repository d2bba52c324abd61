import { describe, expect, test } from "bun:test";
import {
  CapacityWorld,
  isServed,
  placeOf,
  plainPool,
} from "../../../test/support/capacity-world.ts";
import { upstreamOf } from "../../../test/support/pipeline-fixtures.ts";
import { systemClock } from "../../domain/clock.ts";
import { type RequestWait, UpstreamPlaces, UpstreamRequests } from "./upstream-places.ts";

const forever = new AbortController().signal;
/** Longer than any test. */
const longMs = 60_000;

function waitOf(callerSignal: AbortSignal, waitMs = longMs): RequestWait {
  return { callerSignal, waitMs, clock: systemClock };
}

/** The places of an attempt with its first place. */
function attemptAt(upstream: UpstreamPlaces, isBound = true): UpstreamRequests {
  upstream.take();
  return new UpstreamRequests(upstream, isBound, 1);
}

describe("the requests of one attempt", () => {
  test("have one place for as long as it runs, and take more one by one", () => {
    const upstream = new UpstreamPlaces(3);
    const attempt = attemptAt(upstream);
    expect([attempt.tryOpen(), upstream.count]).toEqual([true, 1]);
    expect([attempt.tryOpen(), attempt.tryOpen(), attempt.tryOpen()]).toEqual([true, true, false]);
    for (let closed = 0; closed < 3; closed += 1) attempt.close();
    expect(upstream.count).toBe(1);
    attempt.release();
    expect(upstream.count).toBe(0);
  });

  test("keep the places that were taken for them together until they end", () => {
    const upstream = new UpstreamPlaces(4);
    upstream.take();
    const attempt = attemptAt(upstream);
    expect([attempt.extend(8), upstream.free]).toEqual([3, 0]);
    for (let opened = 0; opened < 3; opened += 1) expect(attempt.tryOpen()).toBe(true);
    attempt.close();
    expect(upstream.count).toBe(3);
    attempt.release();
    expect(upstream.count).toBe(3);
    attempt.close();
    attempt.close();
    expect(upstream.count).toBe(1);
  });

  test("wait for each other in order of arrival while others take places", async () => {
    const upstream = new UpstreamPlaces(1);
    const attempt = attemptAt(upstream);
    attempt.tryOpen();
    const order: string[] = [];
    const first = attempt.whenOpen(waitOf(forever)).then(() => order.push("first"));
    const second = attempt.whenOpen(waitOf(forever)).then(() => order.push("second"));
    attempt.close();
    expect(upstream.tryTake()).toBe(false);
    await first;
    expect(order).toEqual(["first"]);
    attempt.close();
    await second;
    expect(upstream.count).toBe(1);
  });

  test("that stop waiting, by timeout or signal, take no place later", async () => {
    const upstream = new UpstreamPlaces(1);
    upstream.take();
    const single = new UpstreamRequests(upstream, true, 0);
    const leaving = new AbortController();
    const left = single.whenOpen(waitOf(leaving.signal));
    const late = single.whenOpen(waitOf(forever, 1));
    leaving.abort();
    expect(await Promise.all([left, late])).toEqual([false, false]);
    upstream.giveBack();
    expect(upstream.count).toBe(0);
  });

  test("that are part of no attempt give back their place when they end", async () => {
    const upstream = new UpstreamPlaces(1);
    const single = new UpstreamRequests(upstream, true, 0);
    expect([single.tryOpen(), upstream.count]).toEqual([true, 1]);
    const next = new UpstreamRequests(upstream, true, 0);
    const waiting = next.whenOpen(waitOf(forever));
    single.close();
    expect([await waiting, upstream.count]).toEqual([true, 1]);
    next.close();
    expect(upstream.count).toBe(0);
  });

  test("are not bound by a limit that others have reached within guarantees", () => {
    const upstream = new UpstreamPlaces(1);
    upstream.take();
    const sold = attemptAt(upstream, false);
    expect([sold.tryOpen(), sold.tryOpen(), upstream.count]).toEqual([true, true, 3]);
  });
});

describe("a pool at several upstreams", () => {
  const upstreams = [upstreamOf("up", { maxInFlight: 1 }), upstreamOf("other")];
  const timeout = { waitMs: longMs };

  test("takes the places of both in one step, and gives both back", () => {
    const world = new CapacityWorld({ pools: [plainPool], upstreams });
    const place = placeOf(world.tryAsk());
    expect(world.tryAsk()).toMatchObject({ busy: "full" });
    expect([world.held("on-demand"), world.requestsAt("up")]).toEqual([1, 1]);
    place.leave();
    place.leave();
    expect([world.held("on-demand"), world.requestsAt("up")]).toEqual([0, 0]);
  });

  test("lets no call wait for the upstream of another", () => {
    const world = new CapacityWorld({ pools: [plainPool], upstreams });
    const held = placeOf(world.ask());
    const waiting = world.ask({}, timeout);
    const passing = world.ask({}, { ...timeout, upstream: "other" });
    expect([isServed(waiting), isServed(passing)]).toEqual([false, true]);
    held.leave();
    world.pass(0);
    expect(isServed(waiting)).toBe(true);
  });

  test("is passed within guarantees, which other calls at its upstreams cannot delay", () => {
    const world = new CapacityWorld({ pools: [plainPool], upstreams });
    world.sell(50);
    placeOf(world.ask({ accountId: "other" }));
    placeOf(world.tryAsk({ capacityClass: "provisioned" }));
    expect(world.requestsAt("up")).toBe(2);
  });

  test("and the upstream's own calls take turns at its places", () => {
    const world = new CapacityWorld({ pools: [plainPool], upstreams });
    const held = placeOf(world.ask({}, { at: "upstream:up" }));
    const inPool = world.ask({}, timeout);
    const ofUpstream = world.ask({}, { at: "upstream:up", ...timeout });
    held.leave();
    world.pass(0);
    expect([isServed(inPool), isServed(ofUpstream)]).toEqual([true, false]);
    placeOf(inPool).leave();
    world.pass(0);
    expect(isServed(ofUpstream)).toBe(true);
  });
});
