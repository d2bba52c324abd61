import { expect, test } from "bun:test";
import { BackOff, longestDelayMs, soundUptimeMs } from "./back-off.ts";

test("a worker that ends again and again is waited for twice as long each time, up to a bound", () => {
  const backOff = new BackOff();
  const delays = Array.from({ length: 10 }, () => backOff.after(5));
  expect(delays).toEqual([100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000, 10_000]);
  expect(Math.max(...delays)).toBe(longestDelayMs);
});

test("a worker that ran for a minute is started again as soon as the first time", () => {
  const backOff = new BackOff();
  for (let run = 0; run < 6; run += 1) backOff.after(soundUptimeMs - 1);
  expect(backOff.after(soundUptimeMs - 1)).toBe(6400);
  expect(backOff.after(soundUptimeMs)).toBe(100);
  expect(backOff.after(0)).toBe(200);
});
