import { describe, expect, test } from "bun:test";
import { runHotKey, type HotKeyOptions } from "./hot-key.ts";
import { LeasedWindow } from "./leased-window.ts";
import { SlidingWorst } from "./sliding-worst.ts";

const terms = {
  countMs: 0.0225,
  acquireMs: 0.0225,
  settleMs: 0.025,
  giveBackMs: 0.025,
  newsMs: 0.0045,
  networkMs: 0.25,
  againMs: 5,
};
/** Workers are few, so that each of them is as busy with the hot key as in a large fleet. */
const fleet: HotKeyOptions = {
  seed: 1,
  workers: 10,
  keys: 100,
  callsPerSecond: 500,
  hotShare: 0.6,
  hotLoad: 1.5,
  seconds: 130,
  hasLeases: true,
  terms,
};

describe.each([true, false])("one key with most calls; leases: %p", (hasLeases) => {
  const busy = runHotKey({ ...fleet, hasLeases });

  test("gets its limit in the busiest minute, and never more", () => {
    expect(busy.worst).toBe(1);
  });

  test("is not refused by the server while its limit has room", () => {
    expect(busy.refusedWithRoom).toBe(0);
  });

  test("is hardly refused by a worker that repeats a refusal", () => {
    expect(busy.repeatedWithRoom).toBeGreaterThan(0);
    expect(busy.repeatedWithRoom).toBeLessThan(0.005);
  });
});

test("leases leave three scripts to each call of other keys, and few to the hot one", () => {
  const quiet = { ...fleet, hotLoad: 0.8, seconds: 30 };
  const without = runHotKey({ ...quiet, hasLeases: false });
  const leased = runHotKey(quiet);
  // Some calls have not ended.
  expect(without.scriptsPerCall).toBeGreaterThan(2.8);
  expect(without.scriptsPerCall).toBeLessThanOrEqual(3);
  expect(leased.scriptsPerCall).toBeLessThan(1.7);
  expect(leased.utilisation).toBeLessThan(0.6 * without.utilisation);
  expect(leased.hotLeased).toBeGreaterThan(0.8 * leased.hotAdmitted);
  expect(leased.hotAdmitted).toBeGreaterThanOrEqual(leased.hotCalls);
});

test("a refusal that does not wait for recalled leases comes too early", () => {
  const runs = [0, 200].map((againMs) => {
    const slow = { ...terms, networkMs: 20, againMs };
    return runHotKey({ ...fleet, callsPerSecond: 2_000, seconds: 60, terms: slow });
  });
  const [hasty, patient] = runs;
  expect(hasty?.refusedWithRoom).toBeGreaterThan(0);
  expect(patient?.refusedWithRoom).toBe(0);
  for (const { recalls, worst } of runs) {
    expect(recalls).toBeGreaterThan(0);
    expect(worst).toBeLessThanOrEqual(1);
  }
});

test("slow networks delay calls, but never let the key exceed its limit", () => {
  const slow = runHotKey({ ...fleet, terms: { ...terms, networkMs: 20 } });
  expect(slow.worst).toBeLessThanOrEqual(1);
  expect(slow.hotLeased).toBeGreaterThan(0);
});

test("what workers lease is charged at once, and what they give back is free again", () => {
  const window = new LeasedWindow(1_000);
  const wish = { worker: 1, wanted: 40, workers: 5 };
  expect(window.lease(wish, 100)).toEqual({ slot: 0, amount: 40 });
  expect(window.lease({ ...wish, wanted: 400 }, 100)).toEqual({ slot: 0, amount: 48 });
  window.giveBack(1, { slot: 0, amount: 30 }, 1_100);
  let taken = 0;
  while (window.take(1_200)) taken += 1;
  expect(taken).toBe(1_000 - 40 - 48 + 30);
});

test("after a recall there are no leases until the end of the next slot", () => {
  const window = new LeasedWindow(1_000);
  const wish = { worker: 1, wanted: 10, workers: 5 };
  window.lease(wish, 100);
  expect(window.isLeased(200)).toBe(true);
  expect([window.recall(200), window.recall(300)]).toEqual([true, false]);
  expect([900, 1_999, 2_000].map((now) => window.lease(wish, now).amount)).toEqual([0, 0, 10]);
});

test("the worst period may begin at any time", () => {
  const period = new SlidingWorst(100);
  for (const now of [0, 50, 99, 100, 149, 320]) period.add(now);
  // 50, 99, 100 and 149 are within 100; 0 and 100 are not.
  expect(period.worst).toBe(4);
});

test("equal seeds give equal results", () => {
  const short = { ...fleet, seconds: 5 };
  expect(runHotKey(short)).toEqual(runHotKey(short));
});
