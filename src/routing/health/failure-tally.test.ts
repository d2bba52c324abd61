import fc from "fast-check";
import { expect, test } from "bun:test";
import { RecentCount } from "./keyed-share.ts";

const steps = fc.array(
  fc.record({
    passedMs: fc.oneof(fc.nat(50), fc.nat(1_500), fc.nat(30_000)),
    isAdded: fc.boolean(),
  }),
  { maxLength: 200 },
);

test("it counts exactly the events of the last seconds, with any pauses", () => {
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
  const count = new RecentCount(seconds);
  const added: number[] = [];
  let nowMs = startMs;
  for (const { passedMs, isAdded } of taken) {
    nowMs += passedMs;
    if (isAdded) {
      count.add(nowMs);
      added.push(Math.floor(nowMs / 1_000));
    }
    const oldest = Math.floor(nowMs / 1_000) - seconds + 1;
    expect(count.sum(nowMs)).toBe(added.filter((second) => second >= oldest).length);
  }
}

test("a cleared count starts again at zero", () => {
  const count = new RecentCount(10);
  count.add(500);
  count.add(2_500);
  count.clear();
  expect(count.sum(2_500)).toBe(0);
  count.add(2_600);
  expect(count.sum(11_999)).toBe(1);
  expect(count.sum(12_000)).toBe(0);
});
