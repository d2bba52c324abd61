import { expect, test } from "bun:test";
import { ThrottlePause } from "./throttle-pause.ts";

test("a provider that names a time is not asked before, but for no more than five minutes", () => {
  const pause = new ThrottlePause();
  pause.throttled(0, 3_000);
  expect(pause.leftMs(1_000)).toBe(2_000);
  pause.throttled(1_000, 500);
  expect(pause.leftMs(1_000)).toBe(2_000);
  expect(pause.leftMs(3_000)).toBe(0);
  pause.throttled(4_000, 86_400_000);
  expect(pause.leftMs(4_000)).toBe(300_000);
});

test("one that names none is not asked for a second, then twice as long each time, to a bound", () => {
  const pause = new ThrottlePause();
  const pauses: number[] = [];
  let nowMs = 0;
  for (let time = 0; time < 8; time += 1) {
    pause.throttled(nowMs, undefined);
    pauses.push(pause.leftMs(nowMs));
    nowMs += pause.leftMs(nowMs);
  }
  expect(pauses).toEqual([1_000, 2_000, 4_000, 5_000, 5_000, 5_000, 5_000, 5_000]);
});

test("attempts that are refused together are one refusal", () => {
  const pause = new ThrottlePause();
  for (let attempt = 0; attempt < 50; attempt += 1) pause.throttled(attempt, undefined);
  expect(pause.leftMs(49)).toBe(951);
});

test("an answer after the pause starts it anew, one of an attempt from before does not", () => {
  const pause = new ThrottlePause();
  pause.throttled(0, undefined);
  pause.answered(500);
  pause.throttled(1_000, undefined);
  expect(pause.leftMs(1_000)).toBe(2_000);
  pause.answered(3_000);
  pause.throttled(3_000, undefined);
  expect(pause.leftMs(3_000)).toBe(1_000);
});

test("one that keeps naming a short time is asked ever more rarely", () => {
  const pause = new ThrottlePause();
  const pauses: number[] = [];
  let nowMs = 0;
  for (let time = 0; time < 5; time += 1) {
    pause.throttled(nowMs, 1_000);
    pauses.push(pause.leftMs(nowMs));
    nowMs += pause.leftMs(nowMs);
  }
  expect(pauses).toEqual([1_000, 2_000, 4_000, 5_000, 5_000]);
});
