import { expect, test } from "bun:test";
import fc from "fast-check";
import { SecondsRing } from "./seconds-ring.ts";

const steps = fc.array(
  fc.record({
    passedMs: fc.oneof(fc.nat(50), fc.nat(1_500), fc.nat(30_000)),
    isAdded: fc.boolean(),
  }),
  { maxLength: 200 },
);

test("it counts what lies in the last seconds and nothing else, whatever passes in between", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 12 }),
      fc.double({ min: 0, max: 1e7, noNaN: true }),
      steps,
      run,
    ),
    { numRuns: 300 },
  );
});

function run(
  seconds: number,
  startMs: number,
  taken: readonly { passedMs: number; isAdded: boolean }[],
) {
  const ring = new SecondsRing(seconds);
  const added: number[] = [];
  let nowMs = startMs;
  for (const { passedMs, isAdded } of taken) {
    nowMs += passedMs;
    if (isAdded) {
      ring.add(nowMs);
      added.push(Math.floor(nowMs / 1_000));
    }
    const oldest = Math.floor(nowMs / 1_000) - seconds + 1;
    expect(ring.sum(nowMs)).toBe(added.filter((second) => second >= oldest).length);
  }
}

test("a cleared ring counts from there", () => {
  const ring = new SecondsRing(10);
  ring.add(500);
  ring.add(2_500);
  ring.clear();
  expect(ring.sum(2_500)).toBe(0);
  ring.add(2_600);
  expect(ring.sum(11_999)).toBe(1);
  expect(ring.sum(12_000)).toBe(0);
});
