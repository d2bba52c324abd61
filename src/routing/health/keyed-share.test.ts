import { expect, test } from "bun:test";
import fc from "fast-check";
import { KeyedShare } from "./keyed-share.ts";

test("attempts and failures of ten seconds are counted", () => {
  const share = new KeyedShare({ countsFromFailure: false });
  share.succeeded("a", 0);
  share.failed("a", 1_000);
  share.failed("b", 1_000);
  expect(share.all(9_999)).toEqual({ attempts: 3, failures: 2 });
  expect(share.all(10_000)).toEqual({ attempts: 2, failures: 2 });
  expect(share.all(11_000)).toEqual({ attempts: 0, failures: 0 });
});

test("the key that failed most is left out, with its attempts", () => {
  const share = new KeyedShare({ countsFromFailure: false });
  for (let count = 0; count < 10; count += 1) share.failed("bad", count);
  for (let count = 0; count < 10; count += 1) share.succeeded("good", count);
  share.failed("unlucky", 10);
  expect(share.withoutWorst(10)).toEqual({ attempts: 11, failures: 1 });
});

test("a key that calls alone is judged by all that it did, another one ends that", () => {
  const share = new KeyedShare({ countsFromFailure: false });
  share.failed("only", 0);
  expect(share.fair(0)).toEqual({ attempts: 1, failures: 1 });
  share.succeeded("other", 1);
  expect(share.fair(1)).toEqual({ attempts: 1, failures: 0 });
  share.failed("only", 2);
  expect(share.fair(9_999)).toEqual({ attempts: 1, failures: 0 });
  expect(share.fair(10_002)).toEqual({ attempts: 0, failures: 0 });
});

test("a thousand keys that fail hold no more memory than a bound", () => {
  const share = new KeyedShare({ countsFromFailure: false });
  for (let count = 0; count < 1_000; count += 1) share.failed(`k${count}`, 0);
  expect(share.all(0).failures).toBe(1_000);
  expect(share.withoutWorst(0).failures).toBe(999);
});

test("whatever one key does, the share without the worst is that of the others at most", () => {
  const steps = fc.array(
    fc.record({ isBad: fc.boolean(), fails: fc.boolean(), passedMs: fc.nat(500) }),
    { maxLength: 200 },
  );
  fc.assert(
    fc.property(steps, (taken) => {
      const share = new KeyedShare({ countsFromFailure: false });
      const others = new KeyedShare({ countsFromFailure: false });
      let nowMs = 0;
      for (const { isBad, fails, passedMs } of taken) {
        nowMs += passedMs;
        if (isBad) share.failed("bad", nowMs);
        else if (fails) [share, others].forEach((each) => each.failed("good", nowMs));
        else [share, others].forEach((each) => each.succeeded("good", nowMs));
        expect(share.withoutWorst(nowMs).failures).toBeLessThanOrEqual(others.all(nowMs).failures);
      }
    }),
  );
});

test("what was well before the first failure can be left out of the share", () => {
  const share = new KeyedShare({ countsFromFailure: true });
  for (let count = 0; count < 500; count += 1) share.succeeded(`k${count % 20}`, count);
  share.failed("a", 1_000);
  share.succeeded("b", 1_001);
  share.failed("c", 1_002);
  expect(share.all(1_002)).toEqual({ attempts: 3, failures: 2 });
});

test("what a key did after a failure that no longer counts is left out too", () => {
  const share = new KeyedShare({ countsFromFailure: true });
  share.failed("a", 0);
  for (let count = 0; count < 500; count += 1) share.succeeded("a", 12_000 + count);
  for (let count = 0; count < 3; count += 1) {
    for (const key of ["a", "b", "c"]) share.failed(key, 13_000);
  }
  expect(share.all(13_000)).toEqual({ attempts: 9, failures: 9 });
  expect(share.withoutWorst(13_000)).toEqual({ attempts: 6, failures: 6 });
});
