import { expect, test } from "bun:test";
import fc from "fast-check";
import { ManualClock } from "../../test/support/manual-clock.ts";
import {
  modelOf,
  plainRouting,
  targetOf,
  upstreamOf,
} from "../../test/support/pipeline-fixtures.ts";
import type { Target } from "../domain/model.ts";
import { type Candidate, listCandidates, type TargetGroup } from "./candidates.ts";
import { TargetHealth } from "./health/target-health.ts";
import { type TargetView, unknownTarget } from "./target-view.ts";

const names = ["a", "b", "c", "d", "e"];

type Views = Readonly<Record<string, Partial<TargetView>>>;

interface Context {
  readonly views: Views;
  readonly random: () => number;
}

/** Health by upstream; each upstream has one target. */
function contextOf(views: Views = {}, random: () => number = Math.random): Context {
  return { views, random };
}

function groupOf(targets: readonly Target[], views: Views, isFallback = false): TargetGroup {
  const model = modelOf({ targets });
  return {
    isFallback,
    targets: targets.map((target) => ({
      model,
      target,
      upstream: upstreamOf(target.upstream),
      view: { ...unknownTarget, ...views[target.upstream] },
    })),
  };
}

function listOf(targets: readonly Target[], { views, random }: Context): readonly Candidate[] {
  return listCandidates([groupOf(targets, views)], random);
}

function list(targets: readonly Target[], context = contextOf()): string[] {
  return listOf(targets, context).map(({ target }) => target.upstream);
}

function whys(targets: readonly Target[], context: Context): string[] {
  return listOf(targets, context).map(({ target, why }) => `${target.upstream}: ${why}`);
}

/** A seeded sequence. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
}

/** Draws a, b, c in order where the weights are equal. */
function inTurn(): () => number {
  let draws = 0;
  return () => (draws++ % names.length) / (2 * names.length);
}

const ejected = (ejectedForMs: number): Partial<TargetView> => ({
  isEjected: true,
  ejectedForMs,
  because: "5 failures in a row",
});
const [a, b, c, d] = [targetOf("a"), targetOf("b"), targetOf("c"), targetOf("d")];

test("targets of a lower priority number always come first", () => {
  const targets = [
    targetOf("c", { priority: 3, weight: 1_000 }),
    targetOf("a", { priority: 1 }),
    targetOf("b", { priority: 2, weight: 1_000 }),
  ];
  for (let run = 0; run < 200; run += 1) expect(list(targets)).toEqual(["a", "b", "c"]);
});

const weights = fc.array(fc.integer({ min: 1, max: 20 }), { minLength: 2, maxLength: 5 });

test("between similar targets the first is drawn by weight", () => {
  const draws = 4_000;
  fc.assert(
    fc.property(weights, fc.integer({ min: 1, max: 1_000_000 }), (values, seed) => {
      const targets = values.map((weight, index) => targetOf(names[index] ?? "", { weight }));
      const alike = { firstEventMs: 300, failureShare: 0.1, inFlight: 3, limit: 10 };
      const views = Object.fromEntries(names.map((name) => [name, alike]));
      const context = contextOf(views, seeded(seed));
      const firsts = new Map<string, number>();
      for (let draw = 0; draw < draws; draw += 1) {
        const [first = ""] = list(targets, context);
        firsts.set(first, (firsts.get(first) ?? 0) + 1);
      }
      const total = values.reduce((sum, weight) => sum + weight, 0);
      for (const { upstream, weight } of targets) {
        const share = weight / total;
        // Six standard deviations, which chance does not reach.
        const tolerance = 6 * Math.sqrt(draws * share * (1 - share));
        expect(Math.abs((firsts.get(upstream) ?? 0) - draws * share)).toBeLessThan(tolerance);
      }
    }),
    { numRuns: 20 },
  );
});

test("small differences between targets do not override the weights", () => {
  const views = {
    a: { firstEventMs: 590, failureShare: 0.2, inFlight: 9, limit: 10 },
    b: { firstEventMs: 300, failureShare: 0, inFlight: 1, limit: 10 },
  };
  expect(list([a, b], contextOf(views, inTurn()))).toEqual(["a", "b"]);
  // Twice as long, but too short to notice.
  const quick = { a: { firstEventMs: 30 }, b: { firstEventMs: 3 } };
  expect(list([a, b], contextOf(quick, inTurn()))).toEqual(["a", "b"]);
});

test.each([
  ["slower", { firstEventMs: 700 }, { firstEventMs: 300 }],
  ["fails more often", { failureShare: 0.4 }, { failureShare: 0.1 }],
  ["at its limit", { inFlight: 8, limit: 8.5 }, { inFlight: 8, limit: 9 }],
] as const)("the first two swap when the first is clearly worse: %s", (why, one, other) => {
  const targets = [a, b, c];
  expect(whys(targets, contextOf({ a: one, b: other }, inTurn()))).toEqual([
    "b: priority 1, weight 1 of 3",
    `a: priority 1; ${why}`,
    "c: priority 1, weight 1 of 3",
  ]);
  expect(list(targets, contextOf({ a: other, b: one }, inTurn()))).toEqual(["a", "b", "c"]);
});

test("a quick target is not preferred if it fails", () => {
  const views = {
    a: { firstEventMs: 900 },
    b: { firstEventMs: 10, failureShare: 0.9 },
  };
  expect(list([a, b], contextOf(views, inTurn()))).toEqual(["a", "b"]);
});

test("a quicker target that is at its limit is not taken first", () => {
  const views = { a: { firstEventMs: 900 }, b: { firstEventMs: 10, inFlight: 5, limit: 5 } };
  expect(list([a, b], contextOf(views, inTurn()))).toEqual(["a", "b"]);
});

test("the latency of a target with few samples is unknown", () => {
  expect(list([a, b], contextOf({ a: { firstEventMs: 9_000 } }, inTurn()))).toEqual(["a", "b"]);
});

test("a worse target stays ahead of lower priorities", () => {
  const targets = [a, targetOf("b", { priority: 2 })];
  expect(whys(targets, contextOf({ a: { firstEventMs: 9_000 }, b: { firstEventMs: 9 } }))).toEqual([
    "a: priority 1",
    "b: priority 2",
  ]);
});

test("a paused target comes last, behind all priorities", () => {
  const targets = [a, b, targetOf("c", { priority: 2 })];
  expect(whys(targets, contextOf({ a: { pausedForMs: 2_100 } }))).toEqual([
    "b: priority 1",
    "c: priority 2",
    "a: last resort; paused for 3 s, as the provider asked",
  ]);
});

test("ejected targets come last, the one due first in front", () => {
  const views = { a: ejected(11_500), c: ejected(0), d: { pausedForMs: 500 } };
  expect(whys([a, b, c, d], contextOf(views))).toEqual([
    "b: priority 1",
    "c: last resort; ejected until it answers: 5 failures in a row",
    "d: last resort; paused for 1 s, as the provider asked",
    "a: last resort; ejected for 12 s: 5 failures in a row",
  ]);
});

test("an ejected target comes after the fallback, even as the only target of its model", () => {
  const own = groupOf([a], { a: ejected(2_000) });
  const fallback = groupOf([b], {}, true);
  const found = listCandidates([own, fallback], Math.random);
  expect(found.map(({ target, why }) => `${target.upstream}: ${why}`)).toEqual([
    "b: fallback; priority 1",
    "a: last resort; ejected for 2 s: 5 failures in a row",
  ]);
});

test("a target that is ejected or paused is not ready, and serves as a last resort", () => {
  const views = { a: ejected(5_000), b: { pausedForMs: 900 } };
  const found = listOf([a, b, c], contextOf(views));
  expect(found.map(({ isReady, isPaused, hasToServe }) => [isReady, isPaused, hasToServe])).toEqual(
    [
      [true, false, false],
      [false, true, true],
      [false, false, true],
    ],
  );
});

test("a target in slow start has a second, unbounded turn before the last resorts", () => {
  const views = { a: { isStartingSlowly: true }, b: {}, c: ejected(1_000) };
  const found = listOf([a, b, c], contextOf(views, inTurn()));
  expect(found.map(({ turn, hasToServe }) => [turn, hasToServe])).toEqual([
    ["a/m", false],
    ["b/m", false],
    ["a/m again", true],
    ["c/m", true],
  ]);
});

const anyTarget = fc.record({
  priority: fc.integer({ min: 1, max: 3 }),
  weight: fc.integer({ min: 1, max: 50 }),
  ejectedForMs: fc.option(fc.nat(20_000), { nil: undefined }),
  pausedForMs: fc.oneof(fc.constant(0), fc.nat(5_000)),
  failureShare: fc.double({ min: 0, max: 1, noNaN: true }),
  firstEventMs: fc.option(fc.nat(60_000), { nil: undefined }),
  inFlight: fc.nat(10),
});
const draw = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
const anyTargets = fc.array(anyTarget, { minLength: 1, maxLength: names.length });

test("for any health each target is listed once, ready ones first and by priority", () => {
  fc.assert(
    fc.property(anyTargets, draw, (values, number) => {
      const targets = values.map(({ priority, weight }, index) =>
        targetOf(names[index] ?? "", { priority, weight }),
      );
      const views: Record<string, Partial<TargetView>> = {};
      for (const [index, value] of values.entries()) {
        const { ejectedForMs, pausedForMs, failureShare, firstEventMs, inFlight } = value;
        const known = { pausedForMs, failureShare, firstEventMs, inFlight, limit: 5 };
        const isEjected = ejectedForMs === undefined ? {} : ejected(ejectedForMs);
        views[names[index] ?? ""] = { ...known, ...isEjected };
      }
      const found = listOf(
        targets,
        contextOf(views, () => number),
      );
      expect(found.map(({ target }) => target.id).toSorted()).toEqual(
        targets.map(({ id }) => id).toSorted(),
      );
      const readiness = found.map(({ isReady }) => Number(!isReady));
      expect(readiness).toEqual(readiness.toSorted((one, other) => one - other));
      const priorities = found
        .filter(({ isReady }) => isReady)
        .map(({ target }) => target.priority);
      expect(priorities).toEqual(priorities.toSorted((one, other) => one - other));
      const due = found
        .filter(({ isReady }) => !isReady)
        .map(({ target }) => views[target.upstream])
        .map((view) => Math.max(view?.ejectedForMs ?? 0, view?.pausedForMs ?? 0));
      expect(due).toEqual(due.toSorted((one, other) => one - other));
    }),
    { numRuns: 1_000 },
  );
});

test("two of three targets fail: they cost five attempts each, then none while the third serves", () => {
  const clock = new ManualClock();
  const health = new TargetHealth({
    clock,
    settings: () => plainRouting.ejection,
    onEjected: () => undefined,
    onReturned: () => undefined,
  });
  const random = seeded(7);
  const targets = [a, b, c];
  const model = modelOf({ targets });
  const failures = new Map<string, number>();
  let served = 0;
  const call = (key: string): void => {
    const found = targets.map((target) => ({
      model,
      target,
      upstream: upstreamOf(target.upstream),
      view: health.view(target.id, key),
    }));
    for (const { target, hasToServe } of listCandidates(
      [{ targets: found, isFallback: false }],
      random,
    )) {
      const watch = health.tryBegin(target, { key, isStreamed: true, hasToServe });
      if (watch === undefined) continue;
      if (target === a) {
        watch.answered();
        watch.ended("ok");
        served += 1;
        return;
      }
      failures.set(target.id, (failures.get(target.id) ?? 0) + 1);
      watch.ended({ kind: "unavailable", message: "" });
    }
  };
  for (let count = 0; count < 3_000; count += 1) {
    clock.advance(20);
    call(`k${count % 3}`);
  }
  expect(served).toBe(3_000);
  // Nothing probes here, so ejections stay.
  expect([failures.get("b/m"), failures.get("c/m")]).toEqual([5, 5]);
});
