import { describe, expect, test } from "bun:test";
import { endOf, start, up } from "../../../test/support/target-world.ts";
import type { AttemptWatch } from "./target-health.ts";

/** How the calls of some keys affect a target, and must not affect the calls of others. */

describe("failures of one key", () => {
  test("take a target out only for that key, however many they are", () => {
    const { clock, attempt, out, view } = start();
    for (let second = 0; second < 120; second += 1) {
      attempt("timed-out", 5, "bad");
      attempt("ok", 1, "good");
      clock.advance(1_000);
    }
    expect(new Set(out.map(({ key }) => key))).toEqual(new Set(["bad"]));
    expect([view("bad").isOut, view("good").isOut]).toEqual([true, false]);
  });

  test("count for less than half of what takes a target out, and only with those of two others", () => {
    const { attempt, out } = start();
    attempt("unavailable", 4, "bad");
    attempt("unavailable", 3, "unlucky");
    expect(out).toEqual([]);
    attempt("unavailable", 1, "third");
    expect(out).toMatchObject([
      { key: undefined, because: expect.stringMatching(/^5 failures in a row/) },
    ]);
  });

  test("put it out for all when a probe fails after that time", () => {
    const { clock, attempt, out, probe, view } = start();
    attempt("unavailable", 5, "only");
    expect([view("only").isOut, view("other").isOut]).toEqual([true, false]);
    clock.advance(1_000);
    expect([view("only").needsProbe, view("other").needsProbe]).toEqual([true, false]);
    probe("unavailable");
    expect(out.at(-1)).toMatchObject({
      key: undefined,
      because: "a probe failed: unavailable",
    });
    expect(view("other").isOut).toBe(true);
  });

  test("are told as those of all until another key's call lives", () => {
    const { clock, attempt, health } = start();
    const failing = () => health.facts()[0]?.failing;
    attempt("connect-failed", 5, "bad");
    expect(failing()).toBe("5 failures in a row, at last: connect-failed");
    clock.advance(1);
    attempt("ok", 1, "good");
    expect(failing()).toBeUndefined();
    clock.advance(1);
    attempt("connect-failed", 5, "good");
    expect(failing()).toContain("5 failures in a row");
    attempt("throttled", 1, "bad");
    expect(failing()).toContain("5 failures in a row");
  });

  test("put it out for longer when they go on after a probe was answered", () => {
    const { clock, attempt, probe, view, returned } = start();
    attempt("unavailable", 5, "bad");
    clock.advance(1_000);
    probe(undefined);
    expect(returned).toEqual([{ target: up.id, key: "bad" }]);
    attempt("unavailable", 5, "bad");
    expect(view("bad")).toMatchObject({ isOut: true, outForMs: 2_000 });
    expect(view("other").isOut).toBe(false);
  });

  test("of a thousand keys use bounded memory and take nothing out for others", () => {
    const { attempt, view } = start();
    for (let key = 0; key < 1_000; key += 1) {
      attempt("unavailable", 5, `bad-${key}`);
      attempt("ok", 10, "good");
    }
    expect([view("bad-999").isOut, view("bad-0").isOut]).toEqual([true, false]);
    expect(view("good").isOut).toBe(false);
  });
});

/** A target that serves forty keys with calls of a given length, some of which fail. */
function serveFor(
  {
    seconds,
    perSecond,
    streamMs,
    failEvery,
  }: Record<"seconds" | "perSecond" | "streamMs" | "failEvery", number>,
  world = start(),
) {
  const { clock, tryBegin, out, probe, view } = world;
  const open: { endsMs: number; watch: AttemptWatch; fails: boolean }[] = [];
  let refused = 0;
  for (let call = 0; call < seconds * perSecond; call += 1) {
    clock.advance(1_000 / perSecond);
    while ((open[0]?.endsMs ?? Infinity) <= clock.monotonic()) {
      const { watch, fails } = open.shift() ?? {};
      watch?.ended(fails === true ? endOf("broken-answer") : "ok");
    }
    const key = `k${call % 40}`;
    if (view(key).needsProbe) probe(undefined);
    const watch = tryBegin({ key });
    if (watch === undefined) refused += 1;
    const fails = call % failEvery === failEvery - 1;
    if (watch === undefined) continue;
    if (fails && call % 2 === 0) {
      watch.ended(endOf("unavailable"));
      continue;
    }
    watch.answered();
    open.push({ endsMs: clock.monotonic() + streamMs, watch, fails });
  }
  return { out: out.filter(({ key }) => key === undefined), refused };
}

describe("a target of which one call in a hundred fails", () => {
  test.each([1_000, 30_000])("is not out, with streams of %i ms, for five minutes", (streamMs) => {
    const load = { seconds: 300, perSecond: 50, streamMs, failEvery: 99 };
    const { out, refused } = serveFor(load);
    expect(out).toEqual([]);
    // A single key may see two failures in a row right after its own time out.
    expect(refused).toBeLessThan(300 * 50 * 0.01);
  });

  test("is back in service soon after an outage, however long its streams are", () => {
    const world = start();
    world.takeOut();
    world.clock.advance(1_000);
    world.probe(undefined);
    const load = { seconds: 60, perSecond: 50, streamMs: 30_000, failEvery: 99 };
    const { out } = serveFor(load, world);
    expect(out).toHaveLength(1);
  });
});

describe("two keys whose calls fail", () => {
  test("at the same time take nothing out for fifty others whose calls are answered", () => {
    const { clock, begin, out } = start();
    for (let call = 0; call < 500; call += 1) {
      clock.advance(2);
      const watch = begin(`good-${call % 50}`);
      watch.answered();
      watch.ended("ok");
    }
    for (const key of ["a", "a", "a", "b", "b"]) begin(key).ended(endOf("timed-out"));
    expect(out.filter(({ key }) => key === undefined)).toEqual([]);
  });
});

test("the failures of a key with its own time out do not count for the others", () => {
  const { clock, attempt, out, view } = start();
  for (let call = 0; call < 60; call += 1) {
    clock.advance(50);
    attempt(call % 2 === 0 ? "unavailable" : "ok", 1, "bad");
    attempt("ok", 1, "good");
  }
  expect(out.every(({ key }) => key === "bad")).toBe(true);
  attempt("unavailable", 1, "good");
  expect(view("other").isOut).toBe(false);
});

test("the 429s of one key put the target out only for it while others are answered", () => {
  const { clock, attempt, view } = start();
  for (let second = 0; second < 60; second += 1) {
    attempt("ok", 5, "good");
    attempt("throttled", 1, "bad");
    expect([view("good").isOut, view("bad").isRefusing]).toEqual([false, true]);
    clock.advance(1_000);
  }
  attempt("ok", 1, "good");
  attempt("throttled", 1, "bad");
  attempt("throttled", 1, "worse");
  expect(view("good").isRefusing).toBe(true);
});

test("keys of two accounts put it out for all as long as both are refused, keys of one never", () => {
  const { begin, view } = start();
  const refuse = (key: string, account: string, retryAfterMs: number): void =>
    begin(key, account).ended({ kind: "throttled", message: "", retryAfterMs });
  refuse("a", "one", 300_000);
  refuse("b", "one", 300_000);
  expect([view("a").outForMs, view("x").isOut]).toEqual([300_000, false]);
  refuse("y", "two", 60_000);
  expect([view("a").outForMs, view("x").outForMs]).toEqual([300_000, 60_000]);
});

test("with many keys a target that refuses is asked as seldom as with one", () => {
  const { clock, attempt, view } = start();
  let asked = 0;
  for (let call = 0; call < 3_000; call += 1) {
    clock.advance(20);
    const key = `key-${call % 20}`;
    if (view(key).outForMs > 0) continue;
    attempt("throttled", 1, key);
    asked += 1;
  }
  expect(asked).toBeLessThan(40);
});

test("a probe that is refused keeps the target from the refused account, and from no other", () => {
  const { clock, begin, health, view } = start();
  const refusal = { kind: "throttled", message: "", retryAfterMs: 60_000 } as const;
  begin("a", "one").ended(refusal);
  clock.advance(60_000);
  expect(view("a").needsProbe).toBe(true);
  health.tryBeginProbe(up.id)?.ended(refusal);
  expect([view("a").outForMs, view("other").isOut]).toEqual([60_000, false]);
});

test("after a probe that shows nothing, the next one waits for as long as the target was out", () => {
  const { clock, takeOut, health, view } = start();
  takeOut();
  clock.advance(1_000);
  health.tryBeginProbe(up.id)?.ended("nothing");
  expect(view().needsProbe).toBe(false);
  clock.advance(1_000);
  expect(view().needsProbe).toBe(true);
  health.tryBeginProbe(up.id)?.ended({ kind: "stale-credential", message: "" });
  expect(view().outForMs).toBe(2_000);
});

test("failing keys of one account take nothing out for other accounts", () => {
  const { begin, out } = start();
  for (let call = 0; call < 60; call += 1) {
    begin(`key-${call % 3}`, "bad").ended(endOf("unavailable"));
  }
  expect(out.length).toBeGreaterThan(0);
  expect(out.filter(({ key }) => key === undefined)).toEqual([]);
});

test("a key that returned is not out again because of failures before", () => {
  const { clock, attempt, probe, view } = start();
  for (let call = 0; call < 10; call += 1) {
    attempt("ok", 1, "bad");
    attempt("unavailable", 1, "bad");
  }
  attempt("unavailable", 5, "bad");
  expect(view("bad").isOut).toBe(true);
  clock.advance(1_000);
  probe(undefined);
  attempt("unavailable", 1, "bad");
  expect(view("bad").isOut).toBe(false);
});

test("of more keys than are known, one that is out is not forgotten before one that returned", () => {
  const { clock, attempt, begin, probe, view } = start();
  const refuse = (key: string): void => begin(key, "one").ended(endOf("throttled"));
  refuse("long");
  for (let time = 0; time < 8; time += 1) {
    clock.advance(view("long").outForMs);
    refuse("long");
  }
  for (let key = 0; key < 63; key += 1) refuse(`short-${key}`);
  clock.advance(1_000);
  probe(undefined);
  expect([view("long").isOut, view("short-0").isOut]).toEqual([true, false]);
  attempt("unavailable", 5, "new");
  expect([view("long").isOut, view("new").isOut]).toEqual([true, true]);
});
