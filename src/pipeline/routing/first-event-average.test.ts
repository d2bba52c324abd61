import { expect, test } from "bun:test";
import fc from "fast-check";
import { FirstEventAverage } from "./first-event-average.ts";

function sample(average: FirstEventAverage, firstEventMs: number, times = 10, nowMs = 0): void {
  for (let time = 0; time < times; time += 1) average.answered(nowMs, firstEventMs);
}

test("it says nothing before ten samples, and then their average", () => {
  const average = new FirstEventAverage();
  for (let ms = 1; ms <= 9; ms += 1) average.answered(0, ms);
  expect(average.valueAt(0)).toBeUndefined();
  average.answered(0, 10);
  expect(average.valueAt(0)).toBeCloseTo(5.5);
});

test("what is new weighs a tenth", () => {
  const average = new FirstEventAverage();
  sample(average, 100);
  average.answered(0, 200);
  expect(average.valueAt(0)).toBeCloseTo(110);
});

test("a minute without a sample makes it unknown, so that a slow target is tried again", () => {
  const average = new FirstEventAverage();
  sample(average, 9_000);
  expect(average.valueAt(59_999)).toBe(9_000);
  expect(average.valueAt(60_000)).toBeUndefined();
  sample(average, 5, 10, 60_000);
  expect(average.valueAt(60_000)).toBeCloseTo(5);
  sample(average, 9_000, 9, 120_000);
  expect(average.valueAt(120_000)).toBeUndefined();
});

test("a caller that left without an answer counts only where it waited longer than usual", () => {
  const average = new FirstEventAverage();
  average.unanswered(0, 5_000);
  sample(average, 100, 9);
  expect(average.valueAt(0)).toBeUndefined();
  sample(average, 100, 1);
  average.unanswered(0, 50);
  expect(average.valueAt(0)).toBeCloseTo(100);
  average.unanswered(0, 1_100);
  expect(average.valueAt(0)).toBeCloseTo(200);
});

test("it lies between the shortest and the longest sample", () => {
  const samples = fc.array(fc.nat(600_000), { minLength: 10, maxLength: 200 });
  fc.assert(
    fc.property(samples, (taken) => {
      const average = new FirstEventAverage();
      for (const firstEventMs of taken) average.answered(0, firstEventMs);
      const value = average.valueAt(0) ?? Number.NaN;
      expect(value).toBeGreaterThanOrEqual(Math.min(...taken) - 1e-6);
      expect(value).toBeLessThanOrEqual(Math.max(...taken) + 1e-6);
    }),
  );
});
