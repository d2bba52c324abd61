import { expect, test } from "bun:test";
import { LoopDelay } from "./loop-delay.ts";

test("a single pause is no standing delay, two in a row are the shorter one", () => {
  const delay = new LoopDelay();
  for (const [sample, standing] of [
    [0, 0],
    [400, 0],
    [3, 3],
    [0, 0],
    [300, 0],
    [250, 250],
    [280, 250],
  ] as const) {
    delay.add(sample, 0);
    expect(delay.standingMs).toBe(standing);
  }
});

test("the longest delay is reported for five to ten seconds", () => {
  const delay = new LoopDelay();
  delay.add(0, 5_000);
  delay.add(400, 6_000);
  expect(delay.longestMs(6_000)).toBe(400);
  delay.add(10, 9_000);
  expect(delay.longestMs(10_900)).toBe(400);
  delay.add(20, 12_000);
  expect(delay.longestMs(14_900)).toBe(400);
  expect(delay.longestMs(16_000)).toBe(20);
  expect(delay.longestMs(60_000)).toBe(0);
});
