import { beforeEach, expect, test } from "bun:test";
import { LoopMeter } from "./loop-meter.ts";

let now: number;
let meter: LoopMeter;
beforeEach(() => {
  now = 0;
  meter = new LoopMeter({ monotonic: () => now, schedule: () => () => undefined });
});

function add(delayMs: number, at: number): void {
  now = at;
  meter.add(delayMs);
}

test("a single pause is no standing delay, two in a row are the shorter one", () => {
  for (const [sample, standing] of [
    [0, 0],
    [400, 0],
    [3, 3],
    [0, 0],
    [300, 0],
    [250, 250],
    [280, 250],
  ] as const) {
    meter.add(sample);
    expect(meter.standingMs).toBe(standing);
  }
});

test("the longest delay is reported for five to ten seconds", () => {
  const longestAt = (at: number): number => {
    now = at;
    return meter.longestMs;
  };
  add(0, 5_000);
  add(400, 6_000);
  expect(longestAt(6_000)).toBe(400);
  add(10, 9_000);
  expect(longestAt(10_900)).toBe(400);
  add(20, 12_000);
  expect(longestAt(14_900)).toBe(400);
  expect(longestAt(16_000)).toBe(20);
  expect(longestAt(60_000)).toBe(0);
});

test("a minute is summed up by its longest delay and its 99th percentile", () => {
  expect(meter.ofLastMinute).toEqual({ longestMs: 0, p99Ms: 0 });
  for (let sample = 1; sample <= 200; sample += 1) add(sample > 197 ? 300 : 10, sample * 20);
  now = 50_000;
  const { longestMs, p99Ms } = meter.ofLastMinute;
  expect(longestMs).toBe(300);
  expect(p99Ms).toBeWithin(285, 300.1);
  add(5, 61_000);
  const later = meter.ofLastMinute;
  expect(later.longestMs).toBe(5);
  expect(later.p99Ms).toBeWithin(4.7, 5.1);
});
