import { expect, test } from "bun:test";
import { WaitingAttempts, type WaitingAttempt } from "./waiting-attempts.ts";

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
