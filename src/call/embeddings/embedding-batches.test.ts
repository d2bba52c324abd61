import fc from "fast-check";
import { expect, test } from "bun:test";
import { waitBeforeItemRetry } from "./embedding-batches.ts";

const throttled = { kind: "throttled", message: "" } as const;

test("waits double from 100 ms, with full jitter, for four tries in all", () => {
  const longest = 0.999_999;
  const waits = [1, 2, 3].map((tries) => waitBeforeItemRetry(throttled, tries, longest) ?? -1);
  expect(waits.map(Math.round)).toEqual([100, 200, 400]);
  expect(waitBeforeItemRetry(throttled, 1, 0)).toBe(0);
  expect(waitBeforeItemRetry(throttled, 4, 0)).toBeUndefined();
});

test("the Retry-After is the minimum wait, two seconds the maximum", () => {
  const anyAsk = fc.integer({ min: 0, max: 100_000 });
  const anyRandom = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
  fc.assert(
    fc.property(anyAsk, fc.integer({ min: 1, max: 3 }), anyRandom, (retryAfterMs, tries, draw) => {
      const waitMs = waitBeforeItemRetry({ ...throttled, retryAfterMs }, tries, draw) ?? -1;
      expect(waitMs).toBeGreaterThanOrEqual(Math.min(retryAfterMs, 2_000));
      expect(waitMs).toBeLessThanOrEqual(2_000);
    }),
  );
});

test.each(["throttled", "overloaded", "connection-lost"] as const)("%s is retried", (kind) => {
  expect(waitBeforeItemRetry({ kind, message: "" }, 1, 0)).toBe(0);
});

test.each(["unavailable", "invalid-request", "timed-out", "stale-credential"] as const)(
  "%s is not retried for a part of a call",
  (kind) => {
    expect(waitBeforeItemRetry({ kind, message: "" }, 1, 0)).toBeUndefined();
  },
);
