import { expect, test } from "bun:test";
import fc from "fast-check";
import { GatewayError } from "../../../domain/errors/gateway-error.ts";
import { ManualClock } from "../../../../test/support/manual-clock.ts";
import { addressGroup, countedNamesLimit, RateWindow } from "./rate-window.ts";

/** How long to wait, in seconds; undefined when the try was counted. */
function refusedFor(window: RateWindow, name: string): number | undefined {
  try {
    window.count(name);
    return undefined;
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    return Number(error.headers["retry-after"]);
  }
}

test("no period of 60 seconds has more tries than the limit", () => {
  const steps = fc.array(fc.integer({ min: 0, max: 20_000 }), { maxLength: 200 });
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 8 }), steps, (limit, pausesMs) => {
      const clock = new ManualClock();
      const window = new RateWindow(limit, clock);
      const counted: number[] = [];
      for (const pauseMs of pausesMs) {
        clock.advance(pauseMs);
        if (refusedFor(window, "ada") === undefined) counted.push(clock.monotonic());
      }
      for (const [index, at] of counted.entries()) {
        const first = counted[index - limit];
        if (first !== undefined) expect(at - first).toBeGreaterThanOrEqual(60_000);
      }
    }),
  );
});

test("a caller that waits for retry-after is let in, and not much later than needed", () => {
  const waits = fc.array(fc.integer({ min: 0, max: 9_000 }), { minLength: 3, maxLength: 40 });
  fc.assert(
    fc.property(waits, (pausesMs) => {
      const clock = new ManualClock();
      const window = new RateWindow(3, clock);
      for (const pauseMs of pausesMs) {
        clock.advance(pauseMs);
        const waitSeconds = refusedFor(window, "ada");
        if (waitSeconds === undefined) continue;
        expect(waitSeconds).toBeLessThanOrEqual(65);
        clock.advance(waitSeconds * 1000);
        expect(refusedFor(window, "ada")).toBeUndefined();
      }
    }),
  );
});

test("names are counted separately", () => {
  const window = new RateWindow(1, new ManualClock());
  expect(refusedFor(window, "ada")).toBeUndefined();
  expect(refusedFor(window, "bob")).toBeUndefined();
  expect(refusedFor(window, "ada")).toBeGreaterThan(0);
});

test("memory is bounded with any number of names, and shrinks when they are not used", () => {
  const clock = new ManualClock();
  const window = new RateWindow(1, clock);
  for (let index = 0; index < 2 * countedNamesLimit; index += 1) window.count(`name ${index}`);
  expect(window.size).toBe(countedNamesLimit);
  clock.advance(120_000);
  for (let index = 0; index < countedNamesLimit; index += 1) refusedFor(window, "ada");
  expect(window.size).toBe(1);
});

test("the addresses of one IPv6 network are counted together, IPv4 addresses separately", () => {
  expect(addressGroup("2001:db8:0:7::1")).toBe(addressGroup("2001:db8:0:7:a:b:c:d"));
  expect(addressGroup("2001:db8:0:7::1")).not.toBe(addressGroup("2001:db8:0:8::1"));
  expect(addressGroup("2001:db8::1")).toBe(addressGroup("2001:db8::2:0:0:1"));
  expect(addressGroup("::1")).toBe("0:0:0:0::/64");
  expect(addressGroup("fe80::")).toBe("fe80:0:0:0::/64");
  expect(addressGroup("192.0.2.1")).toBe("192.0.2.1");
  expect(addressGroup("unknown")).toBe("unknown");
});
