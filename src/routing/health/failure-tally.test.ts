import fc from "fast-check";
import { expect, test } from "bun:test";
import { FailureTally } from "./failure-tally.ts";
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

test("a key is judged since its first failure of the last ten seconds, whatever was before", () => {
  const settings = {
    failures: 5,
    errorPercent: 40,
    leastAttempts: 20,
    firstMs: 1_000,
    longestMs: 5_000,
  };
  const of = { key: "k", account: "a" };
  for (const hasFailedBefore of [false, true]) {
    const tally = new FailureTally();
    if (hasFailedBefore) tally.failed(of, 0);
    for (let count = 0; count < 300; count += 1) tally.succeeded(of, 20_000 + count);
    for (let count = 0; count < 10; count += 1) {
      tally.failed(of, 21_000);
      tally.succeeded(of, 21_000);
    }
    const reason = "10 of 20 attempts in ten seconds failed";
    expect(tally.reasonForKey("k", 21_000, settings)).toBe(reason);
  }
});
