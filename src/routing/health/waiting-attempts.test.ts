import fc from "fast-check";
import { expect, test } from "bun:test";
import { AnswerTime, type WaitingAttempt, WaitingAttempts } from "./waiting-attempts.ts";

/** A target that usually answers within 100 ms, so that 250 ms are overdue. */
function start() {
  const waiting = new WaitingAttempts();
  const begin = (beganMs: number): WaitingAttempt => {
    const attempt = { beganMs };
    waiting.add(attempt);
    return attempt;
  };
  const answer = (attempt: WaitingAttempt, nowMs: number): void => waiting.answered(attempt, nowMs);
  for (let count = 0; count < 20; count += 1) answer(begin(0), 100);
  return { waiting, begin, answer };
}

test("a target is silent after three overdue attempts without an answer in between", () => {
  const { waiting, begin } = start();
  begin(1_000);
  begin(1_010);
  expect(waiting.isSilent(5_000)).toBe(false);
  begin(1_020);
  expect(waiting.isSilent(1_270)).toBe(false);
  expect(waiting.isSilent(1_271)).toBe(true);
});

test("an answer to a later attempt shows that it is not silent", () => {
  const { waiting, begin, answer } = start();
  for (const beganMs of [1_000, 1_010, 1_020]) begin(beganMs);
  answer(begin(1_100), 1_200);
  expect(waiting.isSilent(9_000)).toBe(false);
});

test("earlier long answers do not hide a later silence", () => {
  const { waiting, begin, answer } = start();
  for (const beganMs of [1_000, 1_010, 1_020]) begin(beganMs);
  answer(begin(1_100), 1_200);
  for (const beganMs of [2_000, 2_010, 2_020]) begin(beganMs);
  expect([waiting.isSilent(2_270), waiting.isSilent(2_271)]).toEqual([false, true]);
  expect(waiting.overdue(2_271)).toHaveLength(6);
});

test("attempts are overdue after three seconds while the usual time is unknown", () => {
  const waiting = new WaitingAttempts();
  for (let count = 0; count < 9; count += 1) waiting.add({ beganMs: count });
  expect([waiting.isSilent(3_002), waiting.isSilent(3_003)]).toEqual([false, true]);
});

test("ended attempts do not count as overdue", () => {
  const { waiting, begin } = start();
  const attempts = [1_000, 1_010, 1_020].map(begin);
  expect(waiting.isSilent(2_000)).toBe(true);
  for (const attempt of attempts) waiting.ended(attempt);
  expect(waiting.isSilent(2_000)).toBe(false);
});

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
