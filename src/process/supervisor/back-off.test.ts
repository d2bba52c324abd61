import { expect, test } from "bun:test";
import { BackOff, longestDelayMs, healthyUptimeMs } from "./back-off.ts";

test("the delay doubles for a worker that keeps ending, up to a maximum", () => {
  const backOff = new BackOff();
  const delays = Array.from({ length: 10 }, () => backOff.after(5));
  expect(delays).toEqual([100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000, 10_000]);
  expect(Math.max(...delays)).toBe(longestDelayMs);
});

test("a worker that ran for a minute is restarted after the first delay again", () => {
  const backOff = new BackOff();
  for (let run = 0; run < 6; run += 1) backOff.after(healthyUptimeMs - 1);
  expect(backOff.after(healthyUptimeMs - 1)).toBe(6400);
  expect(backOff.after(healthyUptimeMs)).toBe(100);
  expect(backOff.after(0)).toBe(200);
});
