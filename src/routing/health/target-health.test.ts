import fc from "fast-check";
import { describe, expect, test } from "bun:test";
import { type End, endOf, start, up } from "../../../test/support/target-world.ts";
import type { UpstreamFailureKind } from "../../domain/errors/failure-kind.ts";
import type { AttemptWatch } from "./target-health.ts";

const evidence: Readonly<Record<UpstreamFailureKind, "failure" | "life" | "refusal" | "neither">> =
  {
    throttled: "refusal",
    overloaded: "failure",
    unavailable: "failure",
    "connect-failed": "failure",
    "timed-out": "failure",
    "connection-lost": "failure",
    "broken-answer": "failure",
    "answer-too-large": "life",
    "unfit-answer": "life",
    "bad-credential": "failure",
    "account-blocked": "failure",
    "stale-credential": "neither",
    unsupported: "life",
    "unknown-model": "failure",
    "context-overflow": "life",
    "invalid-request": "life",
    "content-refused": "life",
  };

const outcomes: readonly (readonly [End & string, string])[] = [
  ["ok", "life"],
  ["left", "neither"],
  ...(Object.entries(evidence) as [UpstreamFailureKind, string][]),
];

describe.each(outcomes)("%s", (outcome, meaning) => {
  test(`is ${meaning} to the time out`, () => {
    const { attempt, out } = start();
    attempt("unavailable", 4);
    attempt(outcome);
    expect(out).toHaveLength(meaning === "failure" ? 1 : 0);
    attempt("unavailable");
    expect(out).toHaveLength(meaning === "life" || meaning === "refusal" ? 0 : 1);
  });

  test("ends the attempt after a time out accordingly", () => {
    const { clock, takeOut, attempt, out, returned } = start();
    takeOut();
    clock.advance(1_000);
    attempt(outcome);
    expect(out).toHaveLength(meaning === "failure" ? 2 : 1);
    expect(returned).toHaveLength(meaning === "life" ? 1 : 0);
  });
});

test("ended attempts are counted for this hour of the clock and the last, failures by kind", () => {
  const { clock, attempt, health } = start();
  const told = () => health.facts()[0]?.ended;
  attempt("ok", 3);
  attempt("left");
  attempt("unavailable", 2);
  clock.advance(3_600_000);
  const at = clock.now();
  attempt("throttled");
  attempt("unavailable");
  const failures = { unavailable: 3, throttled: 1 };
  const lastFailure = { kind: "unavailable", at };
  expect(told()).toMatchObject({ attempts: 8, failures, lastFailure });
  clock.advance(3_600_000);
  expect(told()).toMatchObject({ attempts: 2, failures: { unavailable: 1, throttled: 1 } });
  clock.advance(7_200_000);
  expect(told()).toMatchObject({ attempts: 0, failures: {}, lastFailure });
});

describe("failures of several keys", () => {
  test("take a target out for all after five in a row, with reason and duration", () => {
    const { clock, attempt, out, view } = start();
    for (const key of ["a", "b", "c", "a"]) attempt("timed-out", 1, key);
    expect(view().isOut).toBe(false);
    attempt("connection-lost", 1, "b");
    expect(out).toEqual([
      {
        target: up.id,
        key: undefined,
        forMs: 1_000,
        times: 1,
        because: "5 failures in a row, at last: connection-lost",
      },
    ]);
    clock.advance(400);
    expect(view("d")).toMatchObject({ isOut: true, outForMs: 600 });
  });

  test("take it out when they are half of twenty attempts without the worst key", () => {
    const failTwoOfThree = (times: number, pauseMs: number) => {
      const { clock, attempt, out } = start();
      for (let time = 0; time < times; time += 1) {
        attempt("ok", 1, `k${time % 7}`);
        attempt("unavailable", 1, `k${(time + 1) % 7}`);
        attempt("unavailable", 1, `k${(time + 2) % 7}`);
        clock.advance(pauseMs);
      }
      return out.filter(({ key }) => key === undefined);
    };
    expect(failTwoOfThree(6, 100)).toEqual([]);
    expect(failTwoOfThree(60, 2_000)).toEqual([]);
    const [first] = failTwoOfThree(20, 100);
    expect(first?.because).toMatch(/^\d+ of \d+ attempts in ten seconds failed, at last/);
  });
});

describe("a target that is out", () => {
  test("takes attempts only as a last resort, also when it is due", () => {
    const { clock, takeOut, tryBegin } = start();
    takeOut();
    expect(tryBegin()).toBeUndefined();
    clock.advance(1_000);
    expect(tryBegin()).toBeUndefined();
    expect(tryBegin({ hasToServe: true })).toBeDefined();
  });

  test("needs a probe when it is due, one at a time", () => {
    const { clock, takeOut, health, view } = start();
    takeOut();
    expect(view().needsProbe).toBe(false);
    clock.advance(1_000);
    expect(view().needsProbe).toBe(true);
    expect(health.tryBeginProbe(up.id)).toBeDefined();
    expect(view().needsProbe).toBe(false);
    expect(health.tryBeginProbe(up.id)).toBeUndefined();
  });

  test("returns when a probe is answered", () => {
    const { clock, takeOut, probe, returned, tryBegin, view } = start();
    takeOut();
    clock.advance(1_000);
    probe(undefined);
    expect(returned).toEqual([{ target: up.id, key: undefined }]);
    expect([view().isOut, tryBegin() !== undefined]).toEqual([false, true]);
  });

  test("is out for longer after each failed probe, up to a maximum", () => {
    const { clock, takeOut, probe, out } = start();
    takeOut();
    for (let time = 0; time < 5; time += 1) {
      clock.advance(out.at(-1)?.forMs ?? 0);
      probe("connect-failed");
    }
    expect(out.map(({ forMs }) => forMs)).toEqual([1_000, 2_000, 4_000, 8_000, 10_000, 10_000]);
  });

  test("returns when a last-resort call is answered after it was due, not before", () => {
    const { clock, takeOut, begin, returned } = start();
    takeOut();
    const early = begin();
    clock.advance(1_000);
    early.answered();
    early.ended("ok");
    expect(returned).toEqual([]);
    begin().answered();
    expect(returned).toHaveLength(1);
  });

  test("is out once by attempts that fail together after it was due", () => {
    const { clock, takeOut, begin, out } = start();
    takeOut();
    clock.advance(1_000);
    for (const watch of [begin("a"), begin("b"), begin("c")]) watch.ended(endOf("timed-out"));
    expect(out.map(({ forMs, times }) => [forMs, times])).toEqual([
      [1_000, 1],
      [2_000, 2],
    ]);
    expect(out[1]?.because).toBe("the attempt after its time out failed, at last: timed-out");
  });

  test("is not affected by attempts from before its time out", () => {
    const { clock, health, begin, takeOut, out, returned } = start();
    const early = [begin(), begin(), begin()];
    takeOut();
    early[0]?.ended(endOf("unavailable"));
    clock.advance(1_000);
    early[1]?.ended(endOf("unavailable"));
    early[2]?.answered();
    early[2]?.ended("ok");
    expect([out.length, returned.length]).toEqual([1, 0]);
    expect(health.view(up.id, "k").isOut).toBe(true);
  });
});

describe("a target that returned", () => {
  function returnedTarget() {
    const world = start();
    world.takeOut();
    world.clock.advance(1_000);
    world.probe(undefined);
    return world;
  }

  test("is judged by attempts after its return: earlier failures do not count", () => {
    const { answer, attempt, out } = returnedTarget();
    answer(10);
    attempt("unavailable", 4);
    answer(5);
    attempt("unavailable", 4);
    expect(out).toHaveLength(1);
  });

  test("is out for the first duration again after a healthy period as long as the last time out", () => {
    const timesAfter = (healthyMs: number): number | undefined => {
      const { clock, answer, takeOut, out } = returnedTarget();
      answer(10);
      clock.advance(healthyMs);
      takeOut();
      return out.at(-1)?.times;
    };
    expect([timesAfter(999), timesAfter(1_000)]).toEqual([2, 1]);
  });
});

describe("a silent target", () => {
  /** It usually answers within 100 ms. */
  function knownTarget() {
    const world = start();
    for (let time = 0; time < 20; time += 1) {
      const watch = world.begin();
      expect(watch.overdueAfterMs).toBe(Infinity);
      world.clock.advance(100);
      watch.answered();
      watch.ended("ok");
    }
    return world;
  }

  test("is known after twenty answers, for streams and whole answers apart", () => {
    const { begin, tryBegin } = knownTarget();
    expect(begin().overdueAfterMs).toBe(250);
    expect(tryBegin({ isStreamed: false })?.overdueAfterMs).toBe(Infinity);
  });

  test("is out when hedges won against it, as if those attempts had failed", () => {
    const { begin, out, limit } = knownTarget();
    for (const key of ["a", "b", "c", "a", "b"]) begin(key).ended("silent");
    expect(out).toMatchObject([
      { key: undefined, because: "5 failures in a row, at last: silent" },
    ]);
    expect(limit()).toBe(Infinity);
  });
});

test("a probe that could not be sent changes nothing", () => {
  const { health, out, view } = start();
  health.tryBeginProbe(up.id)?.ended("nothing");
  health.tryBeginProbe(up.id)?.ended({ kind: "stale-credential", message: "" });
  expect([out.length, view().isOut]).toEqual([0, false]);
});

test("the timeout of a probe grows with the time out of service", () => {
  const { clock, health, takeOut, probe, answer } = start();
  answer(20);
  const timeoutMs = (): number => {
    const watch = health.tryBeginProbe(up.id);
    watch?.ended({ kind: "timed-out", message: "" });
    return watch?.timeoutMs ?? 0;
  };
  takeOut();
  clock.advance(1_000);
  expect(timeoutMs()).toBe(250);
  clock.advance(600_000);
  expect(timeoutMs()).toBeGreaterThan(30_000);
  clock.advance(20_000);
  probe(undefined);
});

test("a target that refuses is out until then, and nobody is told", () => {
  const { clock, begin, out, returned, attempt, tryBegin, view, limit } = start();
  const watches = Array.from({ length: 10 }, () => begin());
  watches[0]?.ended({ kind: "throttled", message: "", retryAfterMs: 3_000 });
  for (const watch of watches.slice(1)) watch.ended(endOf("throttled"));
  expect([view().outForMs, view().isRefusing, limit()]).toEqual([3_000, true, Infinity]);
  expect(tryBegin()).toBeUndefined();
  clock.advance(3_000);
  expect(view()).toMatchObject({ isOut: true, isRefusing: false, needsProbe: true });
  attempt("ok");
  expect(view().isOut).toBe(false);
  expect([out, returned]).toEqual([[], []]);
});

test("a Retry-After is honoured up to five minutes, and a shorter one changes nothing", () => {
  const { begin, view } = start();
  const [first, second] = [begin(), begin()];
  first.ended({ kind: "throttled", message: "", retryAfterMs: 86_400_000 });
  second.ended({ kind: "throttled", message: "", retryAfterMs: 500 });
  expect(view().outForMs).toBe(300_000);
});

test("refusals in a row take it out for longer, an answer between them does not", () => {
  const { clock, answer, attempt, view } = start();
  const refusedFor = (): number => {
    attempt("throttled");
    return view().outForMs;
  };
  const times = [refusedFor()];
  for (let time = 0; time < 3; time += 1) {
    clock.advance(times.at(-1) ?? 0);
    times.push(refusedFor());
  }
  expect(times).toEqual([1_000, 2_000, 4_000, 8_000]);
  clock.advance(8_000);
  answer(1);
  clock.advance(8_000);
  expect(refusedFor()).toBe(1_000);
});

test("an overloaded target that sends Retry-After is out until then for the key", () => {
  const { attempt, view } = start();
  attempt({ kind: "overloaded", message: "", retryAfterMs: 4_000 });
  expect([view().outForMs, view("other").isOut]).toEqual([4_000, false]);
});

test("a target at its concurrency limit takes no attempt until one ends", () => {
  const { begin, tryBegin, inFlight, limit } = start();
  const watches = Array.from({ length: 60 }, (_, index) => begin(`k${index % 3}`));
  for (const watch of watches.slice(0, 30)) watch.ended(endOf("overloaded"));
  expect(inFlight()).toBe(30);
  expect(limit()).toBeLessThan(60);
  for (let entered = inFlight(); entered < Math.floor(limit()); entered += 1) begin("k0");
  expect(tryBegin({ key: "k0", hasToServe: true })).toBeUndefined();
  // Another key still has its share.
  expect(tryBegin({ key: "new", hasToServe: true })).toBeDefined();
});

test("a timeout after the first event is no sign of overload", () => {
  const { begin, limit } = start();
  const watches = Array.from({ length: 60 }, (_, index) => begin(`k${index % 3}`));
  for (const watch of watches) {
    watch.answered();
    watch.ended(endOf("timed-out"));
  }
  expect(limit()).toBe(Infinity);
});

test("only the first end of an attempt counts", () => {
  const { begin, out, inFlight } = start();
  for (let time = 0; time < 4; time += 1) {
    const watch = begin();
    watch.ended(endOf("unavailable"));
    watch.ended(endOf("unavailable"));
    watch.answered();
  }
  expect([out.length, inFlight()]).toEqual([0, 0]);
});

test("a removed target is forgotten, and its running attempts report nothing", () => {
  const { health, attempt, begin, out, returned, view } = start();
  attempt("unavailable", 4);
  const late = begin();
  health.retain(new Set(["other/m"]));
  late.ended(endOf("unavailable"));
  // A call from before the reload still uses the target.
  attempt("unavailable", 10);
  expect([out.length, returned.length]).toEqual([0, 0]);
  health.retain(new Set([up.id]));
  expect(view()).toMatchObject({ isOut: false });
  attempt("unavailable", 4);
  expect(out).toEqual([]);
  attempt("unavailable");
  expect(out).toHaveLength(1);
});

test("an account that the provider does not serve is out for five minutes, for all keys", () => {
  const { clock, attempt, begin, probe, out, view } = start();
  const late = begin("b");
  attempt("account-blocked", 1, "a");
  late.ended(endOf("account-blocked"));
  attempt("account-blocked", 3, "c");
  expect(out).toMatchObject([{ key: undefined, forMs: 300_000 }]);
  clock.advance(300_000);
  expect(view("d")).toMatchObject({ isOut: true, outForMs: 0, needsProbe: true });
  probe("account-blocked");
  expect(view("d").outForMs).toBe(300_000);
  clock.advance(300_000);
  probe(undefined);
  expect(view("d")).toMatchObject({ isOut: false });
});

test("a reload keeps the health of remaining targets", () => {
  const { health, takeOut, view } = start();
  takeOut();
  health.retain(new Set([up.id, "new/m"]));
  expect(view().isOut).toBe(true);
});

type Step =
  | { readonly key: string; readonly end: End & string; readonly hasToServe: boolean }
  | { readonly passedMs: number }
  | { readonly probe: UpstreamFailureKind | undefined };

test("for any attempts and probes, views stay in bounds and no count is left over", () => {
  const step: fc.Arbitrary<Step> = fc.oneof(
    { weight: 4, arbitrary: fc.record({ passedMs: fc.oneof(fc.nat(100), fc.nat(5_000)) }) },
    {
      weight: 2,
      arbitrary: fc.record({ probe: fc.constantFrom(undefined, "timed-out", "unavailable") }),
    },
    {
      weight: 12,
      arbitrary: fc.record({
        key: fc.constantFrom("a", "b", "c"),
        end: fc.constantFrom(...outcomes.map(([end]) => end), "unavailable", "timed-out"),
        hasToServe: fc.boolean(),
      }),
    },
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 300 }), fc.nat(4), (steps, delay) => {
      const { clock, health, out, returned, tryBegin, view, limit, inFlight } = start();
      const running: { watch: AttemptWatch; end: End & string }[] = [];
      const endOne = (): void => {
        const { watch, end } = running.shift() ?? {};
        if (end === "ok") watch?.answered();
        if (end !== undefined) watch?.ended(endOf(end));
      };
      for (const taken of steps) {
        if ("passedMs" in taken) clock.advance(taken.passedMs);
        else if ("probe" in taken) {
          const kind = taken.probe;
          health.tryBeginProbe(up.id)?.ended(kind ? { kind, message: "" } : "answered");
        } else {
          const { key, end, hasToServe } = taken;
          const before = view(key);
          const hadRoom = inFlight() + 1 <= limit();
          const watch = tryBegin({ key, hasToServe });
          if (watch !== undefined) running.push({ watch, end });
          if (before.isOut && !hasToServe) expect(watch).toBeUndefined();
          if (!before.isOut && hadRoom) expect(watch).toBeDefined();
        }
        if (running.length > delay) endOne();
        expect(limit()).toBeGreaterThanOrEqual(10);
        for (const key of ["a", "b", "c"]) {
          const seen = view(key);
          expect(seen.outForMs).toBeLessThanOrEqual(300_000);
          if (seen.isOut) expect(seen.because).not.toBe("");
        }
      }
      while (running.length > 0) endOne();
      expect(inFlight()).toBe(0);
      for (const key of [undefined, "a", "b", "c"]) {
        const firsts = out.filter((event) => event.key === key && event.times === 1).length;
        const backs = returned.filter((event) => event.key === key).length;
        // Times out of a run start at the first duration, and a run ends with at most one return.
        expect(firsts).toBeLessThanOrEqual(backs + 1);
      }
    }),
    { numRuns: 300 },
  );
});
