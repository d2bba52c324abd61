import { expect, test } from "bun:test";
import { ManualClock } from "../../../test/support/manual-clock.ts";
import { Outage } from "./outage.ts";

test("an outage is logged at its start and once a minute, not at every failure", () => {
  const clock = new ManualClock();
  const outage = new Outage(clock);
  const lines: number[] = [];
  for (let second = 0; second < 150; second++) {
    if (outage.failed()) lines.push(second);
    clock.advance(1000);
  }
  expect(lines).toEqual([0, 60, 120]);
});

test("the end of an outage is reported once with its duration; the next one starts over", () => {
  const clock = new ManualClock();
  const outage = new Outage(clock);
  expect(outage.recovered()).toBeUndefined();
  outage.failed();
  clock.advance(2500);
  outage.failed();
  clock.advance(500);
  expect(outage.recovered()).toBe(3000);
  expect(outage.recovered()).toBeUndefined();
  expect(outage.failed()).toBe(true);
});
