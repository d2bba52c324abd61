import { expect, test } from "bun:test";
import fc from "fast-check";
import { AnswerTime } from "./answer-time.ts";

function sample(time: AnswerTime, tookMs: number, times = 10, nowMs = 0): void {
  for (let count = 0; count < times; count += 1) time.answered(nowMs, tookMs);
}

test("the average is unknown before ten samples", () => {
  const time = new AnswerTime();
  sample(time, 100, 9);
  expect([time.averageAt(0), time.overdueAfterMs]).toEqual([undefined, 3_000]);
  time.answered(0, 100);
  expect(time.averageAt(0)).toBeCloseTo(100);
});

test("a new sample weighs an eighth", () => {
  const time = new AnswerTime();
  sample(time, 100);
  time.answered(0, 180);
  expect(time.averageAt(0)).toBeCloseTo(110);
});

test("overdue is the average plus four deviations, and at least 250 ms", () => {
  const quick = new AnswerTime();
  sample(quick, 20, 50);
  expect(quick.overdueAfterMs).toBe(250);
  const steady = new AnswerTime();
  sample(steady, 1_000, 100);
  expect(steady.overdueAfterMs).toBeCloseTo(1_000, 0);
  const uneven = new AnswerTime();
  for (let count = 0; count < 100; count += 1) uneven.answered(0, count % 2 === 0 ? 500 : 1_500);
  expect(uneven.overdueAfterMs).toBeGreaterThan(2_500);
});

test("the average expires after a minute, so that a slow target is tried again", () => {
  const time = new AnswerTime();
  sample(time, 9_000);
  expect(time.averageAt(59_999)).toBe(9_000);
  expect(time.averageAt(60_000)).toBeUndefined();
  expect(time.overdueAfterMs).toBeGreaterThan(9_000);
});

test("a caller that left counts only if it waited longer than the average", () => {
  const time = new AnswerTime();
  time.unanswered(0, 5_000);
  sample(time, 100, 9);
  expect(time.averageAt(0)).toBeUndefined();
  sample(time, 100, 1);
  time.unanswered(0, 50);
  expect(time.averageAt(0)).toBeCloseTo(100);
  time.unanswered(0, 900);
  // Of the 900 ms, only twice 250 ms count.
  expect(time.averageAt(0)).toBeCloseTo(150);
});

test("a few very slow answers do not hide that a target falls silent", () => {
  const time = new AnswerTime();
  for (let count = 0; count < 1_000; count += 1) time.answered(0, count % 20 === 0 ? 20_000 : 100);
  expect(time.overdueAfterMs).toBeLessThan(1_500);
});

test("a target that became slower is measured as slow after some answers", () => {
  const time = new AnswerTime();
  sample(time, 100, 50);
  sample(time, 5_000, 50);
  expect(time.averageAt(0)).toBeGreaterThan(4_000);
});

test("the average lies between the extreme samples, and overdue is not below it", () => {
  const samples = fc.array(fc.nat(600_000), { minLength: 10, maxLength: 200 });
  fc.assert(
    fc.property(samples, (taken) => {
      const time = new AnswerTime();
      for (const tookMs of taken) time.answered(0, tookMs);
      const average = time.averageAt(0) ?? Number.NaN;
      expect(average).toBeGreaterThanOrEqual(Math.min(...taken) - 1e-6);
      expect(average).toBeLessThanOrEqual(Math.max(...taken) + 1e-6);
      expect(time.overdueAfterMs).toBeGreaterThanOrEqual(average);
    }),
  );
});
