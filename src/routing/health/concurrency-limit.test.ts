import { expect, test } from "bun:test";
import fc from "fast-check";
import { ConcurrencyLimit } from "./concurrency-limit.ts";

function enter(limit: ConcurrencyLimit, attempts: number, { key = "k", nowMs = 0 } = {}): number {
  let entered = 0;
  for (let attempt = 0; attempt < attempts; attempt += 1) {
    if (!limit.hasRoom(key, nowMs)) continue;
    limit.take(key);
    entered += 1;
  }
  return entered;
}

/** Attempts that end in overload, enough to count as a share. */
function overload(limit: ConcurrencyLimit, nowMs: number, key = "k", times = 20): void {
  for (let time = 0; time < times; time += 1) limit.overloaded(key, nowMs);
}

test("without overload there is no limit", () => {
  const limit = new ConcurrencyLimit();
  expect(enter(limit, 10_000)).toBe(10_000);
  limit.succeeded("k", 0);
  expect(limit.limitAt(0)).toBe(Infinity);
});

test("a share of overloads cuts it to four fifths of what is under way, at most once a second", () => {
  const limit = new ConcurrencyLimit();
  enter(limit, 100);
  overload(limit, 0);
  expect(limit.limitAt(0)).toBe(80);
  for (let left = 0; left < 50; left += 1) limit.giveBack("k");
  overload(limit, 999);
  expect(limit.limitAt(999)).toBe(80);
  overload(limit, 1_000);
  expect(limit.limitAt(1_000)).toBe(40);
});

test("few overloads among many attempts, and few attempts, cut nothing", () => {
  const many = new ConcurrencyLimit();
  enter(many, 100);
  for (let count = 0; count < 200; count += 1) many.succeeded("k", 0);
  overload(many, 0, "k", 20);
  expect(many.limitAt(0)).toBe(Infinity);
  const quiet = new ConcurrencyLimit();
  enter(quiet, 2);
  overload(quiet, 0, "k", 2);
  quiet.giveBack("k");
  quiet.giveBack("k");
  expect(enter(quiet, 30)).toBe(30);
});

test("one key that meets nothing but overloads takes nothing from the others, for a minute", () => {
  const limit = new ConcurrencyLimit();
  for (let key = 0; key < 60; key += 1) enter(limit, 1, { key: `stream-${key}` });
  for (let nowMs = 0; nowMs < 60_000; nowMs += 50) {
    limit.take("bad");
    overload(limit, nowMs, "bad", 1);
    limit.giveBack("bad");
    expect(limit.limitAt(nowMs)).toBe(Infinity);
  }
});

test("overloads of two keys are the target's", () => {
  const limit = new ConcurrencyLimit();
  enter(limit, 50, { key: "a" });
  enter(limit, 50, { key: "b" });
  overload(limit, 0, "a", 30);
  expect(limit.limitAt(0)).toBe(Infinity);
  overload(limit, 0, "b", 30);
  expect(limit.limitAt(0)).toBe(80);
});

test("at the limit each key has its equal part: one that fills it takes no place from others", () => {
  const limit = new ConcurrencyLimit();
  enter(limit, 100, { key: "bad" });
  overload(limit, 0, "bad");
  expect(limit.limitAt(0)).toBe(80);
  expect(enter(limit, 60, { key: "good" })).toBe(40);
  expect(enter(limit, 60, { key: "other" })).toBe(26);
  expect(enter(limit, 60, { key: "bad" })).toBe(0);
});

test("those under way above a lowered limit keep others out until there is room", () => {
  const limit = new ConcurrencyLimit();
  enter(limit, 100);
  overload(limit, 0);
  expect(enter(limit, 5)).toBe(0);
  for (let left = 0; left < 22; left += 1) limit.giveBack("k");
  expect(enter(limit, 5)).toBe(2);
});

test("it never falls below ten attempts", () => {
  const limit = new ConcurrencyLimit();
  for (let second = 0; second < 5; second += 1) {
    enter(limit, 1, { nowMs: second * 1_000 });
    overload(limit, second * 1_000);
    limit.giveBack("k");
  }
  expect(limit.limitAt(5_000)).toBe(10);
  expect(enter(limit, 30, { nowMs: 5_000 })).toBe(10);
});

test("it is back at the level before within as many successes as it lost, and then grows slowly", () => {
  const limit = new ConcurrencyLimit();
  enter(limit, 100);
  overload(limit, 0);
  for (let success = 0; success < 20; success += 1) limit.succeeded("k", 100);
  expect(limit.limitAt(100)).toBe(100);
  for (let success = 0; success < 100; success += 1) limit.succeeded("k", 100);
  expect(limit.limitAt(100)).toBeGreaterThan(100.9);
  expect(limit.limitAt(100)).toBeLessThanOrEqual(101);
});

test("it does not grow where it is not used", () => {
  const limit = new ConcurrencyLimit();
  enter(limit, 100);
  overload(limit, 0);
  for (let left = 0; left < 40; left += 1) limit.giveBack("k");
  limit.succeeded("k", 0);
  expect(limit.limitAt(0)).toBe(80);
});

test("ten seconds without a cut lift it", () => {
  const limit = new ConcurrencyLimit();
  enter(limit, 100);
  overload(limit, 0);
  expect(limit.limitAt(9_999)).toBe(80);
  expect(limit.limitAt(10_000)).toBe(Infinity);
});

type Step = { readonly what: "enter" | "success" | "overload"; readonly key: string } | number;

test("whatever happens, it is at least ten, never rises by overload, and counts who is there", () => {
  const step: fc.Arbitrary<Step> = fc.oneof(
    {
      weight: 12,
      arbitrary: fc.record({
        what: fc.constantFrom("enter", "success", "overload"),
        key: fc.constantFrom("a", "b", "c"),
      }),
    },
    { weight: 2, arbitrary: fc.nat(2_000) },
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 400 }), (steps) => {
      const limit = new ConcurrencyLimit();
      const present: string[] = [];
      let nowMs = 0;
      for (const taken of steps) {
        const before = limit.limitAt(nowMs);
        if (typeof taken === "number") nowMs += taken;
        else if (taken.what === "enter") {
          if (!limit.hasRoom(taken.key, nowMs)) expect(limit.inFlight + 1).toBeGreaterThan(before);
          else {
            limit.take(taken.key);
            present.push(taken.key);
          }
        } else if (present.length > 0) {
          const key = present.shift() ?? "";
          if (taken.what === "success") limit.succeeded(key, nowMs);
          else overload(limit, nowMs, key, 5);
          if (taken.what === "overload") expect(limit.limitAt(nowMs)).toBeLessThanOrEqual(before);
          limit.giveBack(key);
        }
        expect(limit.inFlight).toBe(present.length);
        expect(limit.limitAt(nowMs)).toBeGreaterThanOrEqual(10);
      }
    }),
    { numRuns: 300 },
  );
});
