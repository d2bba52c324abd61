import { expect, test } from "bun:test";
import { virtualClock } from "../../../test/support/virtual-clock.ts";
import { watchMain } from "./main-watch.ts";

function watched() {
  const { clock, advance } = virtualClock();
  let ends = 0;
  let isOrphan = false;
  const watch = watchMain({ end: () => void (ends += 1), isOrphan: () => isOrphan }, clock);
  return { watch, advance, ends: () => ends, orphan: () => void (isOrphan = true) };
}

test("a main thread that does not tick for ten seconds is ended once", () => {
  const { advance, ends } = watched();
  advance(10_000);
  expect(ends()).toBe(0);
  advance(1_000);
  expect(ends()).toBe(1);
  advance(60_000);
  expect(ends()).toBe(1);
});

test("a main thread that ticks goes on, however long", () => {
  const { watch, advance, ends } = watched();
  for (let tick = 0; tick < 100; tick += 1) {
    advance(9_000);
    watch.tick();
  }
  expect(ends()).toBe(0);
  advance(11_000);
  expect(ends()).toBe(1);
});

test("a main thread that hangs is ended at once when its parent has ended", () => {
  const { watch, advance, ends, orphan } = watched();
  orphan();
  for (let tick = 0; tick < 10; tick += 1) {
    watch.tick();
    advance(1_000);
  }
  expect(ends()).toBe(0);
  advance(1_000);
  expect(ends()).toBe(1);
});

test("a process that ends in order is not ended", () => {
  const { watch, advance, ends } = watched();
  advance(5_000);
  watch.stop();
  advance(60_000);
  expect(ends()).toBe(0);
});
