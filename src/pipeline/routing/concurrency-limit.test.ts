import { expect, test } from "bun:test";
import fc from "fast-check";
import { ConcurrencyLimit } from "./concurrency-limit.ts";

function enter(limit: ConcurrencyLimit, attempts: number, nowMs = 0): number {
  let entered = 0;
  for (let attempt = 0; attempt < attempts; attempt += 1) if (limit.tryEnter(nowMs)) entered += 1;
  return entered;
}

test("without trouble there is no limit", () => {
  const limit = new ConcurrencyLimit();
  expect(enter(limit, 10_000)).toBe(10_000);
  limit.success(0);
  expect(limit.limitAt(0)).toBe(Infinity);
});

test("trouble cuts it to four fifths of what is under way, at most once a second", () => {
  const limit = new ConcurrencyLimit();
  enter(limit, 100);
  limit.trouble(0);
  expect(limit.limitAt(0)).toBe(80);
  for (let left = 0; left < 50; left += 1) limit.leave();
  limit.trouble(999);
  expect(limit.limitAt(999)).toBe(80);
  limit.trouble(1_000);
  expect(limit.limitAt(1_000)).toBe(40);
});

test("who is under way above a lowered limit keeps others out until there is room", () => {
  const limit = new ConcurrencyLimit();
  enter(limit, 100);
  limit.trouble(0);
  expect(enter(limit, 5)).toBe(0);
  for (let left = 0; left < 22; left += 1) limit.leave();
  expect(enter(limit, 5)).toBe(2);
});

test("it never falls below ten attempts: one bad answer on a quiet target closes nothing", () => {
  const limit = new ConcurrencyLimit();
  for (let second = 0; second < 5; second += 1) {
    enter(limit, 1, second * 1_000);
    limit.trouble(second * 1_000);
    limit.leave();
  }
  expect(limit.limitAt(5_000)).toBe(10);
  expect(enter(limit, 30, 5_000)).toBe(10);
});

test("what was sold is not held to it, but counted", () => {
  const limit = new ConcurrencyLimit();
  enter(limit, 100);
  limit.trouble(0);
  limit.enterAnyway();
  expect([limit.inFlight, limit.tryEnter(0)]).toEqual([101, false]);
});

test("as many successes as it allows lift it by about one, but only while it is nearly used", () => {
  const limit = new ConcurrencyLimit();
  enter(limit, 100);
  limit.trouble(0);
  for (let left = 0; left < 40; left += 1) limit.leave();
  limit.success(0);
  expect(limit.limitAt(0)).toBe(80);
  enter(limit, 20);
  for (let success = 0; success < 80; success += 1) limit.success(0);
  expect(limit.limitAt(0)).toBeGreaterThan(80.9);
  expect(limit.limitAt(0)).toBeLessThanOrEqual(81);
});

test("a minute without trouble lifts it", () => {
  const limit = new ConcurrencyLimit();
  enter(limit, 100);
  limit.trouble(0);
  limit.trouble(500);
  expect(limit.limitAt(60_499)).toBe(80);
  expect(limit.limitAt(60_500)).toBe(Infinity);
});

type Step = "enter" | "success" | "trouble" | number;

test("whatever happens, it is at least ten, never rises by trouble, and holds for newcomers", () => {
  const step = fc.oneof(
    { weight: 6, arbitrary: fc.constant<Step>("enter") },
    { weight: 4, arbitrary: fc.constant<Step>("success") },
    { weight: 2, arbitrary: fc.constant<Step>("trouble") },
    { weight: 2, arbitrary: fc.nat(2_000) },
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 400 }), (steps) => {
      const limit = new ConcurrencyLimit();
      let nowMs = 0;
      let most = 0;
      for (const taken of steps) {
        const before = limit.limitAt(nowMs);
        if (typeof taken === "number") nowMs += taken;
        else if (taken === "enter") {
          if (limit.tryEnter(nowMs)) expect(limit.inFlight).toBeLessThanOrEqual(before);
          else expect(limit.inFlight + 1).toBeGreaterThan(before);
        } else if (limit.inFlight > 0) {
          if (taken === "success") limit.success(nowMs);
          else limit.trouble(nowMs);
          if (taken === "trouble") expect(limit.limitAt(nowMs)).toBeLessThanOrEqual(before);
          limit.leave();
        }
        most = Math.max(most, limit.inFlight);
        const now = limit.limitAt(nowMs);
        expect(now).toBeGreaterThanOrEqual(10);
        // It can outgrow what it ever let in only by as much as it grows from.
        if (now !== Infinity) expect(now).toBeLessThanOrEqual(Math.max(10, most / 0.8 + 1));
      }
    }),
    { numRuns: 300 },
  );
});
