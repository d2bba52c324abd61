import { expect, test } from "bun:test";
import { CountingTargets } from "./counting-targets.ts";

const minuteMs = 60_000;

test("a target that failed to count rests, longer if an operator has to mend it", () => {
  let now = 5;
  const targets = new CountingTargets({ monotonic: () => now });
  targets.failed("busy", "throttled");
  targets.failed("refused", "bad-credential");
  const resting = () => ["busy", "refused", "other"].map((id) => targets.isResting(id));
  expect(resting()).toEqual([true, true, false]);
  now += minuteMs;
  expect(resting()).toEqual([false, true, false]);
  now += 9 * minuteMs;
  expect(resting()).toEqual([false, false, false]);
});

test("a request that cannot be counted says nothing about its target", () => {
  const targets = new CountingTargets({ monotonic: () => 0 });
  for (const kind of ["invalid-request", "context-overflow", "unsupported"] as const) {
    targets.failed("up/model", kind);
  }
  expect(targets.isResting("up/model")).toBe(false);
});
