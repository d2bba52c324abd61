import fc from "fast-check";
import { expect, test } from "bun:test";
import { AnswerTime } from "./answer-time.ts";

function timeOf(...samples: readonly number[]): AnswerTime {
  const time = new AnswerTime();
  for (const sampleMs of samples) time.answered(sampleMs);
  return time;
}

function repeated(sampleMs: number, times: number): readonly number[] {
  return Array.from({ length: times }, () => sampleMs);
}

test("nothing is overdue before twenty samples", () => {
  expect(timeOf(...repeated(100, 19)).overdueAfterMs).toBe(Infinity);
  expect(timeOf(...repeated(100, 20)).overdueAfterMs).toBe(250);
});

test("overdue is the average plus four deviations, and at least 250 ms", () => {
  expect(timeOf(...repeated(20, 50)).overdueAfterMs).toBe(250);
  expect(timeOf(...repeated(1_000, 100)).overdueAfterMs).toBeCloseTo(1_000, 0);
  const uneven = Array.from({ length: 100 }, (_, index) => (index % 2 === 0 ? 500 : 1_500));
  expect(timeOf(...uneven).overdueAfterMs).toBeGreaterThan(2_500);
});

test("a few very slow answers do not hide that a target falls silent", () => {
  const samples = Array.from({ length: 1_000 }, (_, index) => (index % 20 === 0 ? 20_000 : 100));
  expect(timeOf(...samples).overdueAfterMs).toBeLessThan(1_500);
});

test("a target that became slower is known as slow after some answers", () => {
  const slower = timeOf(...repeated(100, 50), ...repeated(5_000, 50));
  expect(slower.overdueAfterMs).toBeGreaterThan(4_000);
});

test("for any samples it is a number that is not below the fastest of them", () => {
  const samples = fc.array(fc.nat(600_000), { minLength: 20, maxLength: 200 });
  fc.assert(
    fc.property(samples, (taken) => {
      const { overdueAfterMs } = timeOf(...taken);
      expect(overdueAfterMs).toBeGreaterThanOrEqual(Math.max(250, Math.min(...taken)) - 1e-6);
      expect(overdueAfterMs).toBeLessThan(Infinity);
    }),
  );
});
