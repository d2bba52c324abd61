import { expect, test } from "bun:test";
import fc from "fast-check";
import { AnswerTime } from "./answer-time.ts";

function sample(time: AnswerTime, tookMs: number, times = 10, nowMs = 0): void {
  for (let count = 0; count < times; count += 1) time.answered(nowMs, tookMs);
}

test("it says nothing before ten samples, and then their average", () => {
  const time = new AnswerTime();
  sample(time, 100, 9);
  expect([time.averageAt(0), time.patienceMs]).toEqual([undefined, 3_000]);
  time.answered(0, 100);
  expect(time.averageAt(0)).toBeCloseTo(100);
});

test("what is new weighs an eighth", () => {
  const time = new AnswerTime();
  sample(time, 100);
  time.answered(0, 180);
  expect(time.averageAt(0)).toBeCloseTo(110);
});

test("patience is the average and four deviations, and never less than anybody feels", () => {
  const quick = new AnswerTime();
  sample(quick, 20, 50);
  expect(quick.patienceMs).toBe(250);
  const steady = new AnswerTime();
  sample(steady, 1_000, 100);
  expect(steady.patienceMs).toBeCloseTo(1_000, 0);
  const uneven = new AnswerTime();
  for (let count = 0; count < 100; count += 1) uneven.answered(0, count % 2 === 0 ? 500 : 1_500);
  expect(uneven.patienceMs).toBeGreaterThan(2_500);
});

test("a minute without a sample makes the average unknown, so that a slow target is tried again", () => {
  const time = new AnswerTime();
  sample(time, 9_000);
  expect(time.averageAt(59_999)).toBe(9_000);
  expect(time.averageAt(60_000)).toBeUndefined();
  expect(time.patienceMs).toBeGreaterThan(9_000);
});

test("a caller that left without an answer counts only where it waited longer than usual", () => {
  const time = new AnswerTime();
  time.unanswered(0, 5_000);
  sample(time, 100, 9);
  expect(time.averageAt(0)).toBeUndefined();
  sample(time, 100, 1);
  time.unanswered(0, 50);
  expect(time.averageAt(0)).toBeCloseTo(100);
  time.unanswered(0, 900);
  // Of 900 ms, two patiences of 250 ms count.
  expect(time.averageAt(0)).toBeCloseTo(150);
});

test("a few very slow answers do not make a target that falls silent look well", () => {
  const time = new AnswerTime();
  for (let count = 0; count < 1_000; count += 1) time.answered(0, count % 20 === 0 ? 20_000 : 100);
  expect(time.patienceMs).toBeLessThan(1_500);
});

test("a target that has become slower is known as such after some answers", () => {
  const time = new AnswerTime();
  sample(time, 100, 50);
  sample(time, 5_000, 50);
  expect(time.averageAt(0)).toBeGreaterThan(4_000);
});

test("the average lies between the shortest and the longest sample, patience is not below it", () => {
  const samples = fc.array(fc.nat(600_000), { minLength: 10, maxLength: 200 });
  fc.assert(
    fc.property(samples, (taken) => {
      const time = new AnswerTime();
      for (const tookMs of taken) time.answered(0, tookMs);
      const average = time.averageAt(0) ?? Number.NaN;
      expect(average).toBeGreaterThanOrEqual(Math.min(...taken) - 1e-6);
      expect(average).toBeLessThanOrEqual(Math.max(...taken) + 1e-6);
      expect(time.patienceMs).toBeGreaterThanOrEqual(average);
    }),
  );
});
