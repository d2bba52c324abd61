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

test("a minute is summed up by its longest delay and its 99th percentile", () => {
  const delay = new LoopDelay();
  expect(delay.ofLastMinute(0)).toEqual({ longestMs: 0, p99Ms: 0 });
  for (let sample = 1; sample <= 200; sample += 1) delay.add(sample > 197 ? 300 : 10, sample * 20);
  const { longestMs, p99Ms } = delay.ofLastMinute(50_000);
  expect(longestMs).toBe(300);
  expect(p99Ms).toBeWithin(285, 300.1);
  delay.add(5, 61_000);
  const later = delay.ofLastMinute(61_000);
  expect(later.longestMs).toBe(5);
  expect(later.p99Ms).toBeWithin(4.7, 5.1);
});
