import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { ManualClock } from "../../../test/support/manual-clock.ts";
import { plainRouting, targetOf } from "../../../test/support/pipeline-fixtures.ts";
import type { Target } from "../../domain/model.ts";
import type { UpstreamFailureDetails, UpstreamFailureKind } from "../../domain/upstream-failure.ts";
import { TargetHealth, type AttemptWatch, type EjectedTarget } from "./target-health.ts";

/** Five in a row, or half of twenty; one second at first, at most ten. */
const ejection = plainRouting.ejection;
const up = targetOf("up");

type End = "ok" | "left" | UpstreamFailureKind | UpstreamFailureDetails;

function start() {
  const clock = new ManualClock();
  const ejected: EjectedTarget[] = [];
  const returned: string[] = [];
  const health = new TargetHealth({
    clock,
    settings: () => ejection,
    onEjected: (event) => void ejected.push(event),
    onReturned: (target) => void returned.push(target),
  });
  const begin = (target: Target = up): AttemptWatch => {
    const watch = health.tryBegin(target);
    if (watch === undefined) throw new Error("the target takes no attempt");
    return watch;
  };
  const attempt = (outcome: End, times = 1): void => {
    for (let time = 0; time < times; time += 1) begin().ended(endOf(outcome));
  };
  return { clock, health, ejected, returned, begin, attempt };
}

function endOf(outcome: End): "ok" | "left" | UpstreamFailureDetails {
  if (typeof outcome !== "string" || outcome === "ok" || outcome === "left") return outcome;
  return { kind: outcome, message: "" };
}

/** Whether it counts towards ejection, is a sign of life, or is neither. */
const evidence: Readonly<Record<UpstreamFailureKind, "failure" | "life" | "neither">> = {
  throttled: "life",
  overloaded: "failure",
  unavailable: "failure",
  "connect-failed": "failure",
  "timed-out": "failure",
  "connection-lost": "failure",
  "broken-answer": "failure",
  "bad-credential": "failure",
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
  test(`is ${meaning} to ejection`, () => {
    const { attempt, ejected } = start();
    attempt("unavailable", 4);
    attempt(outcome);
    expect(ejected).toHaveLength(meaning === "failure" ? 1 : 0);
    attempt("unavailable");
    expect(ejected).toHaveLength(meaning === "life" ? 0 : 1);
  });

  test("ends the attempt after an ejection accordingly", () => {
    const { clock, health, attempt, ejected, returned } = start();
    attempt("unavailable", 5);
    clock.advance(1_000);
    attempt(outcome);
    expect(ejected).toHaveLength(meaning === "failure" ? 2 : 1);
    expect(returned).toHaveLength(meaning === "life" ? 1 : 0);
    expect(health.view(up.id).isProbing).toBe(false);
  });
});

test("five failures in a row eject a target, and it is told why and for how long", () => {
  const { clock, health, attempt, ejected } = start();
  attempt("timed-out", 4);
  expect(health.view(up.id).isEjected).toBe(false);
  attempt("connection-lost");
  expect(ejected).toEqual([
    {
      target: up.id,
      forMs: 1_000,
      times: 1,
      because: "5 failures in a row, at last: connection-lost",
    },
  ]);
  clock.advance(400);
  expect(health.view(up.id)).toMatchObject({ isEjected: true, ejectedForMs: 600 });
});

test("half of at least twenty attempts in ten seconds eject a target, fewer or older ones do not", () => {
  const failHalf = (pairs: number, pauseMs: number): readonly EjectedTarget[] => {
    const { clock, attempt, ejected } = start();
    for (let pair = 0; pair < pairs; pair += 1) {
      attempt("ok");
      attempt("unavailable");
      clock.advance(pauseMs);
    }
    return ejected;
  };
  expect(failHalf(9, 100)).toEqual([]);
  expect(failHalf(40, 1_200)).toEqual([]);
  expect(failHalf(10, 100)).toEqual([
    expect.objectContaining({
      because: "10 of 20 attempts in ten seconds failed, at last: unavailable",
    }),
  ]);
});

test("when its time is over one attempt at a time tries a target, and its answer returns it", () => {
  const { clock, health, begin, attempt, returned } = start();
  attempt("unavailable", 5);
  clock.advance(1_000);
  expect(health.view(up.id)).toMatchObject({ isEjected: true, ejectedForMs: 0, isProbing: false });
  const probe = begin();
  expect(health.view(up.id).isProbing).toBe(true);
  expect(health.tryBegin(up)).toBeUndefined();
  probe.answered(20);
  expect(returned).toEqual([up.id]);
  expect(health.view(up.id)).toMatchObject({ isEjected: false, isProbing: false });
  expect(health.tryBegin(up)).toBeDefined();
});

test("a target whose answers break off is back on trust: the first that breaks ejects it again", () => {
  const { clock, begin, attempt, ejected } = start();
  attempt("unavailable", 5);
  clock.advance(1_000);
  const probe = begin();
  probe.answered(20);
  probe.ended(endOf("broken-answer"));
  expect(ejected).toHaveLength(2);
});

test("once an answer came to a good end, an attempt that fails counts like any other", () => {
  const { clock, begin, attempt, ejected } = start();
  attempt("unavailable", 5);
  clock.advance(1_000);
  const probe = begin();
  probe.answered(20);
  probe.ended("ok");
  attempt("broken-answer", 4);
  expect(ejected).toHaveLength(1);
  attempt("broken-answer");
  expect(ejected).toHaveLength(2);
});

test("a target that has to serve takes all attempts after its ejection", () => {
  const { clock, health, attempt, returned } = start();
  attempt("unavailable", 5);
  clock.advance(1_000);
  const watches = [1, 2, 3].map(() => health.tryBegin(up, { hasToServe: true }));
  expect(watches.every((watch) => watch !== undefined)).toBe(true);
  watches.forEach((watch) => watch?.ended("ok"));
  expect(returned).toEqual([up.id]);
});

test("attempts that fail together after an ejection eject once more, for twice as long", () => {
  const { clock, health, attempt, ejected } = start();
  attempt("unavailable", 5);
  clock.advance(1_000);
  const watches = [1, 2, 3].map(() => health.tryBegin(up, { hasToServe: true }));
  watches.forEach((watch) => watch?.ended(endOf("timed-out")));
  expect(ejected.map(({ forMs, times }) => [forMs, times])).toEqual([
    [1_000, 1],
    [2_000, 2],
  ]);
  expect(ejected[1]?.because).toBe("the attempt after its ejection failed, at last: timed-out");
});

test("what a target answers before the time of its ejection is over does not end it", () => {
  const { clock, health, attempt, returned } = start();
  attempt("unavailable", 5);
  const during = health.tryBegin(up, { hasToServe: true });
  attempt("ok");
  clock.advance(1_000);
  during?.answered(1_000);
  during?.ended("ok");
  expect(returned).toEqual([]);
  expect(health.view(up.id).isEjected).toBe(true);
});

test("an attempt that tries a target does not keep others from it when that was ejected again", () => {
  const { clock, health, begin, ejected } = start();
  for (let time = 0; time < 5; time += 1) begin().ended(endOf("unavailable"));
  clock.advance(1_000);
  const hanging = begin();
  health.tryBegin(up, { hasToServe: true })?.ended(endOf("unavailable"));
  expect(ejected).toHaveLength(2);
  expect(health.view(up.id).isProbing).toBe(false);
  clock.advance(2_000);
  const probe = begin();
  hanging.ended(endOf("timed-out"));
  expect(health.view(up.id).isProbing).toBe(true);
  probe.ended("ok");
  expect(health.view(up.id).isEjected).toBe(false);
});

test("a target that returned is judged by what came after", () => {
  const { clock, begin, attempt, ejected, returned } = start();
  const early = begin();
  const untilEjected = (): number => {
    const before = ejected.length;
    let pairs = 0;
    while (ejected.length === before) {
      attempt("ok");
      attempt("unavailable");
      pairs += 1;
    }
    return pairs;
  };
  expect(untilEjected()).toBe(10);
  clock.advance(1_000);
  attempt("unsupported");
  expect(returned).toHaveLength(1);
  // The attempt that returned it counts already.
  attempt("unavailable");
  expect(untilEjected()).toBe(9);
  clock.advance(2_000);
  attempt("ok");
  attempt("unavailable", 4);
  early.ended("ok");
  attempt("unavailable");
  expect(ejected).toHaveLength(3);
});

test("failures from before an ejection are no part of the share after it", () => {
  const { clock, attempt, ejected } = start();
  attempt("unavailable", 5);
  clock.advance(1_000);
  attempt("ok", 10);
  attempt("unavailable", 4);
  attempt("ok", 5);
  attempt("unavailable", 4);
  expect(ejected).toHaveLength(1);
});

test("attempts from before an ejection neither prolong nor end it", () => {
  const { clock, health, begin, attempt, ejected, returned } = start();
  const early = [begin(), begin(), begin()];
  attempt("unavailable", 5);
  early[0]?.ended(endOf("unavailable"));
  clock.advance(1_000);
  early[1]?.ended(endOf("unavailable"));
  early[2]?.answered(1_000);
  early[2]?.ended("ok");
  expect([ejected.length, returned.length]).toEqual([1, 0]);
  expect(health.view(up.id).isEjected).toBe(true);
});

test("each ejection in a row is twice as long, to a bound", () => {
  const { clock, begin, attempt, ejected } = start();
  attempt("unavailable", 5);
  for (let time = 0; time < 5; time += 1) {
    clock.advance(ejected.at(-1)?.forMs ?? 0);
    begin().ended(endOf("unavailable"));
  }
  expect(ejected.map(({ forMs }) => forMs)).toEqual([1_000, 2_000, 4_000, 8_000, 10_000, 10_000]);
});

test("a healthy period as long as the last ejection makes the next a first one", () => {
  const timesAfter = (healthyMs: number): number | undefined => {
    const { clock, attempt, ejected } = start();
    attempt("unavailable", 5);
    clock.advance(1_000);
    attempt("unavailable");
    clock.advance(2_000);
    attempt("ok");
    clock.advance(healthyMs);
    attempt("unavailable", 5);
    return ejected.at(-1)?.times;
  };
  expect(timesAfter(1_999)).toBe(3);
  expect(timesAfter(2_000)).toBe(1);
});

test("a throttled target pauses, and is neither cut nor ejected", () => {
  const { health, begin, ejected } = start();
  const watches = Array.from({ length: 10 }, () => begin());
  watches[0]?.ended({ kind: "throttled", message: "", retryAfterMs: 3_000 });
  for (const watch of watches.slice(1)) watch.ended(endOf("throttled"));
  expect(ejected).toEqual([]);
  expect(health.view(up.id)).toMatchObject({
    pausedForMs: 3_000,
    limit: Infinity,
    failureShare: 0,
  });
});

test("an answer after a pause makes the next pause a short one again", () => {
  const { clock, health, begin, attempt } = start();
  attempt("throttled");
  clock.advance(1_000);
  const watch = begin();
  watch.answered(10);
  watch.ended("ok");
  attempt("throttled");
  expect(health.view(up.id).pausedForMs).toBe(1_000);
});

test("a target that names a time to come back is left alone for it, whatever it failed with", () => {
  const { health, attempt } = start();
  attempt({ kind: "overloaded", message: "", retryAfterMs: 4_000 });
  expect(health.view(up.id).pausedForMs).toBe(4_000);
});

test("a target at its limit takes no attempt until one ends", () => {
  const { health, begin } = start();
  const watches = Array.from({ length: 20 }, () => begin());
  watches[0]?.ended(endOf("overloaded"));
  for (const watch of watches.slice(1, 4)) watch.ended("ok");
  expect(health.view(up.id)).toMatchObject({ inFlight: 16 });
  expect(health.tryBegin(up)).toBeUndefined();
  expect(health.tryBegin(up, { isGuaranteed: true })).toBeDefined();
  for (const watch of watches.slice(4, 6)) watch.ended("left");
  expect(health.tryBegin(up)).toBeDefined();
});

test("only the first end of an attempt counts", () => {
  const { health, begin, ejected } = start();
  for (let time = 0; time < 4; time += 1) {
    const watch = begin();
    watch.ended(endOf("unavailable"));
    watch.ended(endOf("unavailable"));
    watch.answered(5);
  }
  expect(ejected).toEqual([]);
  expect(health.view(up.id).inFlight).toBe(0);
});

test("a caller that leaves after a long wait tells that the target is slow", () => {
  const { clock, health, begin } = start();
  for (let time = 0; time < 9; time += 1) {
    const watch = begin();
    watch.answered(100);
    watch.answered(9_000);
    watch.ended("ok");
  }
  expect(health.view(up.id).firstEventMs).toBeUndefined();
  const [long, slow] = [begin(), begin()];
  long.answered(100);
  clock.advance(1_100);
  long.ended("left");
  expect(health.view(up.id).firstEventMs).toBeCloseTo(100);
  slow.ended("left");
  expect(health.view(up.id).firstEventMs).toBeCloseTo(200);
});

test("a target that the configuration no longer has is forgotten, and its attempts end in silence", () => {
  const { health, begin, attempt, ejected, returned } = start();
  attempt("unavailable", 4);
  const late = begin();
  health.retain(new Set(["other/m"]));
  late.ended(endOf("unavailable"));
  // A call that began before the reload still goes there.
  attempt("unavailable", 10);
  expect([ejected.length, returned.length]).toEqual([0, 0]);
  health.retain(new Set([up.id]));
  expect(health.view(up.id)).toMatchObject({ isEjected: false, inFlight: 0 });
  attempt("unavailable", 4);
  expect(ejected).toEqual([]);
  attempt("unavailable");
  expect(ejected).toHaveLength(1);
});

test("a reload keeps what is known of the targets that stay", () => {
  const { health, attempt } = start();
  attempt("unavailable", 5);
  health.retain(new Set([up.id, "new/m"]));
  expect(health.view(up.id).isEjected).toBe(true);
});

type Step = { readonly target: number; readonly end: End & string } | { readonly passedMs: number };

test("whatever attempts bring, notices alternate, views stay in bounds and nothing is left over", () => {
  const step: fc.Arbitrary<Step> = fc.oneof(
    { weight: 4, arbitrary: fc.record({ passedMs: fc.oneof(fc.nat(100), fc.nat(5_000)) }) },
    {
      weight: 10,
      arbitrary: fc.record({
        target: fc.nat(2),
        end: fc.constantFrom(...outcomes.map(([end]) => end), "unavailable", "timed-out"),
      }),
    },
  );
  const targets = ["a", "b", "c"].map((name) => targetOf(name));
  fc.assert(
    fc.property(fc.array(step, { maxLength: 300 }), fc.nat(4), (steps, delay) => {
      const { clock, health, ejected, returned } = start();
      const running: { watch: AttemptWatch; end: End & string }[] = [];
      const endOne = (): void => {
        const { watch, end } = running.shift() ?? {};
        if (end === "ok") watch?.answered(10);
        if (end !== undefined) watch?.ended(endOf(end));
      };
      for (const taken of steps) {
        if ("passedMs" in taken) clock.advance(taken.passedMs);
        else {
          const target = targets[taken.target] ?? up;
          const watch = health.tryBegin(target);
          const view = health.view(target.id);
          if (watch !== undefined) running.push({ watch, end: taken.end });
          else expect(view.isProbing || view.inFlight + 1 > view.limit).toBe(true);
        }
        if (running.length > delay) endOne();
        for (const { id } of targets) {
          const view = health.view(id);
          expect(view.limit).toBeGreaterThanOrEqual(1);
          expect(view.ejectedForMs).toBeLessThanOrEqual(ejection.longestMs);
          expect(view.pausedForMs).toBeLessThanOrEqual(30_000);
          expect(view.failureShare).toBeLessThanOrEqual(1);
          expect(view.isProbing && !view.isEjected).toBe(false);
        }
      }
      while (running.length > 0) endOne();
      for (const { id } of targets) {
        const view = health.view(id);
        expect([view.inFlight, view.isProbing]).toEqual([0, false]);
        const first = ejected.filter(({ target, times }) => target === id && times === 1).length;
        const backs = returned.filter((target) => target === id).length;
        // Every run of ejections begins with a first one and ends with at most one return.
        expect(first).toBeLessThanOrEqual(backs + 1);
        if (!view.isEjected && first > 0) expect(backs).toBeGreaterThanOrEqual(first);
      }
    }),
    { numRuns: 300 },
  );
});
