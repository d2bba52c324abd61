import { expect, test } from "bun:test";
import { TargetPause } from "./target-pause.ts";

/** Throttles the key each time its pause is over, and returns the pauses. */
function pausesOf(pause: TargetPause, times: number, retryAfterMs?: number): readonly number[] {
  const pauses: number[] = [];
  let nowMs = 0;
  for (let time = 0; time < times; time += 1) {
    pause.throttled("a", nowMs, { retryAfterMs });
    pauses.push(pause.leftMs("a", nowMs));
    nowMs += pause.leftMs("a", nowMs);
  }
  return pauses;
}

test("a Retry-After is honoured up to five minutes", () => {
  const pause = new TargetPause();
  pause.throttled("a", 0, { retryAfterMs: 3_000 });
  expect(pause.leftMs("a", 1_000)).toBe(2_000);
  pause.throttled("a", 1_000, { retryAfterMs: 500 });
  expect(pause.leftMs("a", 1_000)).toBe(2_000);
  expect(pause.leftMs("a", 3_000)).toBe(0);
  pause.throttled("a", 4_000, { retryAfterMs: 86_400_000 });
  expect(pause.leftMs("a", 4_000)).toBe(300_000);
});

test("without a Retry-After the pause is a second and doubles each time, up to a maximum", () => {
  expect(pausesOf(new TargetPause(), 7)).toEqual([1_000, 2_000, 4_000, 5_000, 5_000, 5_000, 5_000]);
});

test("repeated short Retry-Afters still lead to growing pauses", () => {
  expect(pausesOf(new TargetPause(), 5, 1_000)).toEqual([1_000, 2_000, 4_000, 5_000, 5_000]);
});

test("attempts that are throttled together count once", () => {
  const pause = new TargetPause();
  for (let attempt = 0; attempt < 50; attempt += 1) pause.throttled("a", attempt);
  expect(pause.leftMs("a", 49)).toBe(951);
});

test("an answer after the pause resets it, one from before does not", () => {
  const pause = new TargetPause();
  pause.throttled("a", 0);
  pause.answered("a", 500);
  pause.throttled("a", 1_000);
  expect(pause.leftMs("a", 1_000)).toBe(2_000);
  pause.answered("a", 3_000);
  pause.throttled("a", 3_000);
  expect(pause.leftMs("a", 3_000)).toBe(1_000);
});

test("it is for all keys as long as two of them are refused, whatever one of them is told", () => {
  const pause = new TargetPause();
  pause.throttled("a", 0, { retryAfterMs: 300_000 });
  expect([pause.leftMs("a", 0), pause.leftMs("b", 0)]).toEqual([300_000, 0]);
  pause.throttled("b", 10, { retryAfterMs: 2_000 });
  pause.asked("a", 20, { retryAfterMs: 300_000 });
  expect([pause.leftMs("c", 10), pause.leftForAllMs(10)]).toEqual([2_000, 2_000]);
  expect([pause.leftMs("a", 2_010), pause.leftMs("c", 2_010)]).toEqual([298_010, 0]);
});

test("two keys of one account pause it for others for seconds only, and those of two in full", () => {
  const pause = new TargetPause();
  for (const key of ["a", "b", "c"]) {
    pause.throttled(key, 0, { retryAfterMs: 300_000, account: "one" });
  }
  expect([pause.leftMs("a", 0), pause.leftMs("x", 0)]).toEqual([300_000, 5_000]);
  pause.throttled("y", 5_000, { retryAfterMs: 60_000, account: "two" });
  expect([pause.leftMs("a", 5_000), pause.leftMs("x", 5_000)]).toEqual([295_000, 60_000]);
});

test("with many keys the pauses grow as with one", () => {
  const pause = new TargetPause();
  let asked = 0;
  for (let nowMs = 0; nowMs < 60_000; nowMs += 20) {
    const key = `key-${(nowMs / 20) % 20}`;
    if (pause.leftMs(key, nowMs) > 0) continue;
    pause.throttled(key, nowMs);
    asked += 1;
  }
  expect(asked).toBeLessThan(40);
});
