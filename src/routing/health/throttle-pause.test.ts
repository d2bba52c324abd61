import { expect, test } from "bun:test";
import { ThrottlePause } from "./throttle-pause.ts";

test("a Retry-After is honoured up to five minutes", () => {
  const pause = new ThrottlePause();
  pause.throttled(0, 3_000);
  expect(pause.leftMs(1_000)).toBe(2_000);
  pause.throttled(1_000, 500);
  expect(pause.leftMs(1_000)).toBe(2_000);
  expect(pause.leftMs(3_000)).toBe(0);
  pause.throttled(4_000, 86_400_000);
  expect(pause.leftMs(4_000)).toBe(300_000);
});

test("without a Retry-After the pause is a second and doubles each time, up to a maximum", () => {
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

test("attempts that are throttled together count once", () => {
  const pause = new ThrottlePause();
  for (let attempt = 0; attempt < 50; attempt += 1) pause.throttled(attempt, undefined);
  expect(pause.leftMs(49)).toBe(951);
});

test("an answer after the pause resets it, one from before does not", () => {
  const pause = new ThrottlePause();
  pause.throttled(0, undefined);
  pause.answered(500);
  pause.throttled(1_000, undefined);
  expect(pause.leftMs(1_000)).toBe(2_000);
  pause.answered(3_000);
  pause.throttled(3_000, undefined);
  expect(pause.leftMs(3_000)).toBe(1_000);
});

test("repeated short Retry-Afters still lead to growing pauses", () => {
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
