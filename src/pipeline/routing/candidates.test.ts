import { expect, test } from "bun:test";
import fc from "fast-check";
import { ManualClock } from "../../../test/support/manual-clock.ts";
import {
  modelOf,
  plainRouting,
  snapshotOf,
  targetOf,
} from "../../../test/support/pipeline-fixtures.ts";
import type { Target } from "../../domain/model.ts";
import { listCandidates, listEjected, type CandidateContext } from "./candidates.ts";
import { TargetHealth } from "./target-health.ts";
import { unknownTarget, type TargetView } from "./target-view.ts";

const names = ["a", "b", "c", "d", "e"];
const snapshot = snapshotOf(names);

type Views = Readonly<Record<string, Partial<TargetView>>>;

/** What is known by upstream; each test's upstream has one target. */
function contextOf(views: Views = {}, random: () => number = Math.random): CandidateContext {
  const view = (id: string): TargetView => ({
    ...unknownTarget,
    ...views[id.slice(0, id.indexOf("/"))],
  });
  return { snapshot, health: { view }, random };
}

function list(targets: readonly Target[], context = contextOf()): string[] {
  return listCandidates(modelOf({ targets }), context).map(({ target }) => target.upstream);
}

function whys(targets: readonly Target[], context: CandidateContext): string[] {
  return listCandidates(modelOf({ targets }), context).map(
    ({ target, why }) => `${target.upstream}: ${why}`,
  );
}

/** The same sequence in every run. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
}

/** Draws a first, then b, and so on, where the weights are alike. */
function inTurn(): () => number {
  let draws = 0;
  return () => (draws++ % names.length) / (2 * names.length);
}

const ejected = (ejectedForMs: number): Partial<TargetView> => ({ isEjected: true, ejectedForMs });
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

test("between targets that are alike the first is drawn by weight", () => {
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
        // Six standard deviations: chance alone never gets there.
        const tolerance = 6 * Math.sqrt(draws * share * (1 - share));
        expect(Math.abs((firsts.get(upstream) ?? 0) - draws * share)).toBeLessThan(tolerance);
      }
    }),
    { numRuns: 20 },
  );
});

test("small differences between targets do not disturb the weights", () => {
  const views = {
    a: { firstEventMs: 590, failureShare: 0.2, inFlight: 9, limit: 10 },
    b: { firstEventMs: 300, failureShare: 0, inFlight: 1, limit: 10 },
  };
  expect(list([a, b], contextOf(views, inTurn()))).toEqual(["a", "b"]);
  // Twice as long, but nobody feels it.
  const quick = { a: { firstEventMs: 30 }, b: { firstEventMs: 3 } };
  expect(list([a, b], contextOf(quick, inTurn()))).toEqual(["a", "b"]);
});

test.each([
  ["slower", { firstEventMs: 700 }, { firstEventMs: 300 }],
  ["fails more often", { failureShare: 0.4 }, { failureShare: 0.1 }],
  ["at its limit", { inFlight: 8, limit: 8.5 }, { inFlight: 8, limit: 9 }],
] as const)(
  "the first two change places when the first is clearly worse: %s",
  (why, one, other) => {
    const targets = [a, b, c];
    expect(whys(targets, contextOf({ a: one, b: other }, inTurn()))).toEqual([
      "b: priority 1, weight 1 of 3",
      `a: priority 1; ${why}`,
      "c: priority 1, weight 1 of 3",
    ]);
    expect(list(targets, contextOf({ a: other, b: one }, inTurn()))).toEqual(["a", "b", "c"]);
  },
);

test("being quick makes no target better that fails", () => {
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

test("nothing is said of how quick a target is that was hardly tried", () => {
  expect(list([a, b], contextOf({ a: { firstEventMs: 9_000 } }, inTurn()))).toEqual(["a", "b"]);
});

test("a worse target stays before those of other priorities", () => {
  const targets = [a, targetOf("b", { priority: 2 })];
  expect(whys(targets, contextOf({ a: { firstEventMs: 9_000 }, b: { firstEventMs: 9 } }))).toEqual([
    "a: priority 1",
    "b: priority 2",
  ]);
});

test("a target whose provider asked for a pause comes last, also behind other priorities", () => {
  const targets = [a, b, targetOf("c", { priority: 2 })];
  expect(whys(targets, contextOf({ a: { pausedForMs: 2_100 } }))).toEqual([
    "b: priority 1",
    "c: priority 2",
    "a: paused for 3 s",
  ]);
});

test("an ejected target is left out, and those who ask are told", () => {
  const context = contextOf({ b: ejected(11_500) });
  expect(list([a, b], context)).toEqual(["a"]);
  expect(listEjected(modelOf({ targets: [a, b] }), context)).toEqual([
    { target: "b/m", model: "alpha-sonnet-4", why: "ejected for 12 s" },
  ]);
});

test("a target whose ejection is over has its normal place", () => {
  const context = contextOf({ a: ejected(0) });
  expect(whys([a, targetOf("b", { priority: 2 })], context)).toEqual([
    "a: probe after ejection",
    "b: priority 2",
  ]);
});

test("the only target of a model is never left out, whatever it does", () => {
  const candidate = (view: Partial<TargetView>) =>
    listCandidates(modelOf({ targets: [a] }), contextOf({ a: view }))[0];
  expect(candidate({})).toMatchObject({ why: "priority 1", hasToServe: false });
  const alone = { why: "ejected, but there is no other target", hasToServe: true };
  expect(candidate(ejected(5_000))).toMatchObject(alone);
  expect(candidate(ejected(0))).toMatchObject(alone);
  expect(candidate({ pausedForMs: 900 })).toMatchObject({ why: "paused for 1 s" });
});

test("when more than half are ejected, those whose ejection ends first have to serve", () => {
  const views = { a: ejected(9_000), b: ejected(3_000), c: ejected(6_000) };
  const targets = [a, b, c, d];
  const found = listCandidates(modelOf({ targets }), contextOf(views));
  expect(found.map(({ target }) => target.upstream).toSorted()).toEqual(["b", "d"]);
  expect(found.find(({ target }) => target === b)).toMatchObject({
    why: "ejected, but half of the targets must stay",
    hasToServe: true,
  });
  expect(found.find(({ target }) => target === d)?.hasToServe).toBe(false);
});

test("among targets whose ejection is over, only those that must take more than one attempt", () => {
  const views = { a: ejected(0), b: ejected(0), c: ejected(0) };
  const found = listCandidates(modelOf({ targets: [a, b, c, d] }), contextOf(views));
  expect(found).toHaveLength(4);
  expect(found.filter(({ hasToServe }) => hasToServe)).toHaveLength(1);
});

test("where a call may not go everywhere, half of where it may go stays", () => {
  const context = {
    ...contextOf({ a: ejected(5_000), b: ejected(1_000) }),
    mayUse: ({ upstream }: Target) => upstream === "a",
  };
  expect(list([a, b, c, d], context)).toEqual(["a"]);
});

test("a target whose upstream the snapshot does not have is left out", () => {
  expect(list([a, targetOf("gone")])).toEqual(["a"]);
  expect(list([targetOf("gone")])).toEqual([]);
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

test("whatever is known of them: none twice, half stay, the paused last, the rest by priority", () => {
  fc.assert(
    fc.property(anyTargets, draw, (values, number) => {
      const targets = values.map(({ priority, weight }, index) =>
        targetOf(names[index] ?? "", { priority, weight }),
      );
      const views: Record<string, Partial<TargetView>> = {};
      values.forEach(
        ({ ejectedForMs, pausedForMs, failureShare, firstEventMs, inFlight }, index) => {
          const isEjected = ejectedForMs === undefined ? {} : ejected(ejectedForMs);
          const view = {
            pausedForMs,
            failureShare,
            firstEventMs,
            inFlight,
            limit: 5,
            ...isEjected,
          };
          views[names[index] ?? ""] = view;
        },
      );
      const context = contextOf(views, () => number);
      const found = listCandidates(modelOf({ targets }), context);
      const leftOut = listEjected(modelOf({ targets }), context);
      const isPaused = found.map(({ target }) => (views[target.upstream]?.pausedForMs ?? 0) > 0);
      const isHeldBack = found.filter(
        ({ target, hasToServe }) => views[target.upstream]?.isEjected === true && !hasToServe,
      );
      const all = [...found.map(({ target }) => target.id), ...leftOut.map(({ target }) => target)];

      expect(all.toSorted()).toEqual(targets.map(({ id }) => id).toSorted());
      const most = Math.floor(targets.length / 2);
      expect(leftOut.length + isHeldBack.length).toBeLessThanOrEqual(most);
      expect(isPaused).toEqual(isPaused.toSorted((one, other) => Number(one) - Number(other)));
      for (const group of [false, true]) {
        const priorities = found
          .filter((_, index) => isPaused[index] === group)
          .map(({ target }) => target.priority);
        expect(priorities).toEqual(priorities.toSorted((one, other) => one - other));
      }
    }),
    { numRuns: 1_000 },
  );
});

test("one bad target of three costs five attempts, and then one with each end of its ejection", () => {
  const clock = new ManualClock();
  const health = new TargetHealth({
    clock,
    settings: () => plainRouting.ejection,
    onEjected: () => undefined,
    onReturned: () => undefined,
  });
  const model = modelOf({ targets: [a, b, c] });
  const context = { snapshot, health, random: seeded(7) };
  let failures = 0;
  const serve = (forMs: number): void => {
    for (let passedMs = 0; passedMs < forMs; passedMs += 10) {
      clock.advance(10);
      for (const { target, hasToServe } of listCandidates(model, context)) {
        const watch = health.tryBegin(target, { hasToServe: hasToServe === true });
        if (watch === undefined) continue;
        if (target !== a) {
          watch.answered(30);
          watch.ended("ok");
          break;
        }
        failures += 1;
        watch.ended({ kind: "unavailable", message: "" });
      }
    }
  };
  serve(1_000);
  expect(failures).toBe(5);
  // Ejected for 1, 2, 4, 8 and 10 seconds; the sixth ends after this.
  serve(33_900);
  expect(failures - 5).toBeGreaterThanOrEqual(4);
  expect(failures - 5).toBeLessThanOrEqual(5);
});
