import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { ManualClock } from "../../test/support/manual-clock.ts";
import {
  modelOf,
  plainRouting,
  targetOf,
  upstreamOf,
} from "../../test/support/pipeline-fixtures.ts";
import type { Target } from "../domain/model.ts";
import type { Session } from "./affinity.ts";
import { type Candidate, listCandidates, type TargetGroup } from "./candidates.ts";
import { TargetHealth } from "./health/target-health.ts";
import { type TargetView, unknownTarget } from "./target-view.ts";

const names = ["a", "b", "c", "d", "e"];

type Views = Readonly<Record<string, Partial<TargetView>>>;

interface Context {
  readonly views: Views;
  readonly random: () => number;
}

const idle = { inFlightOf: () => 0 };

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
  return listCandidates([groupOf(targets, views)], { random, health: idle });
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

const out = (outForMs: number): Partial<TargetView> => ({
  isOut: true,
  outForMs,
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

test("between targets of a priority the first is drawn by weight", () => {
  const draws = 4_000;
  fc.assert(
    fc.property(weights, fc.integer({ min: 1, max: 1_000_000 }), (values, seed) => {
      const targets = values.map((weight, index) => targetOf(names[index] ?? "", { weight }));
      const context = contextOf({}, seeded(seed));
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

test("targets that are out come last, behind all priorities, the one due first in front", () => {
  const views = { a: out(11_500), c: out(0), d: { ...out(500), isRefusing: true } };
  const targets = [a, targetOf("b", { priority: 2 }), c, d];
  expect(whys(targets, contextOf(views))).toEqual([
    "b: priority 2",
    "c: last resort; out until it answers: 5 failures in a row",
    "d: last resort; out for 1 s: 5 failures in a row",
    "a: last resort; out for 12 s: 5 failures in a row",
  ]);
  const found = listOf(targets, contextOf(views));
  expect(found.map(({ isReady, isRefusing }) => [isReady, isRefusing])).toEqual([
    [true, false],
    [false, false],
    [false, true],
    [false, false],
  ]);
});

test("a target that wrote the newest thoughts comes first of its group, if it is in service", () => {
  const continuing = ({ targets, ...group }: TargetGroup, name: string): TargetGroup => ({
    ...group,
    targets: targets.map((found) =>
      found.target.upstream === name ? { ...found, continues: true } : found,
    ),
  });
  const second = targetOf("c", { priority: 2, weight: 100 });
  const targets = [a, targetOf("b", { priority: 2 }), second];
  const fallback = groupOf([d], {}, true);
  const order = (name: string, views: Views = {}): string => {
    const groups = [continuing(groupOf(targets, views), name), continuing(fallback, name)];
    return listCandidates(groups, { random: () => 0.5, health: idle })
      .map(({ target }) => target.upstream)
      .join("");
  };
  expect(order("none")).toBe("acbd");
  expect(order("b")).toBe("bacd");
  expect(order("c")).toBe("cabd");
  // A model that stands in comes after the one that the caller asked for.
  expect(order("d")).toBe("acbd");
  expect(order("b", { b: out(500) })).toBe("acdb");
});

test("the reason names the weight among targets of the same priority that are in service", () => {
  const targets = [a, b, targetOf("c", { priority: 2, weight: 5 }), d];
  expect(whys(targets, contextOf({ d: out(500) }, inTurn()))).toEqual([
    "a: priority 1, weight 1 of 2",
    "b: priority 1, weight 1 of 2",
    "c: priority 2",
    "d: last resort; out for 1 s: 5 failures in a row",
  ]);
});

test("a target that is out comes after the fallback, even as the only target of its model", () => {
  const own = groupOf([a], { a: out(2_000) });
  const fallback = groupOf([b], {}, true);
  const found = listCandidates([own, fallback], { random: Math.random, health: idle });
  expect(found.map(({ target, why }) => `${target.upstream}: ${why}`)).toEqual([
    "b: fallback; priority 1",
    "a: last resort; out for 2 s: 5 failures in a row",
  ]);
});

const anyTarget = fc.record({
  priority: fc.integer({ min: 1, max: 3 }),
  weight: fc.integer({ min: 1, max: 50 }),
  outForMs: fc.option(fc.nat(20_000), { nil: undefined }),
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
      for (const [index, { outForMs }] of values.entries()) {
        views[names[index] ?? ""] = outForMs === undefined ? {} : out(outForMs);
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
        .map(({ target }) => views[target.upstream]?.outForMs ?? 0);
      expect(due).toEqual(due.toSorted((one, other) => one - other));
    }),
    { numRuns: 1_000 },
  );
});

test("two of three targets fail: they cost five attempts each, then none while the third serves", () => {
  const clock = new ManualClock();
  const health = new TargetHealth({
    clock,
    settings: () => plainRouting.out,
    onOut: () => undefined,
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
    for (const { target, isReady } of listCandidates([{ targets: found, isFallback: false }], {
      random,
      health,
    })) {
      const watch = health.tryBegin(target, { key, isStreamed: true, hasToServe: !isReady });
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
  // Nothing probes here, so targets stay out.
  expect([failures.get("b/m"), failures.get("c/m")]).toEqual([5, 5]);
});

describe("for a session", () => {
  const session: Session = { kind: "session", hash: 7 };
  const all = [a, b, c, targetOf("d", { priority: 2 }), targetOf("e", { priority: 2 })];
  const listed = (
    inFlight: Readonly<Record<string, number>> = {},
    views: Views = {},
    continuing = "",
  ): readonly Candidate[] => {
    const { targets, isFallback } = groupOf(all, views);
    const found = targets.map((each) =>
      each.target.upstream === continuing ? { ...each, continues: true } : each,
    );
    const health = { inFlightOf: (id: string) => inFlight[id.slice(0, 1)] ?? 0 };
    return listCandidates(
      [{ targets: found, isFallback }],
      { random: Math.random, health },
      session,
    );
  };
  const order = (...of: Parameters<typeof listed>): string =>
    listed(...of)
      .map(({ target }) => target.upstream)
      .join("");
  const usual = order();
  const [first = "", second = "", third = ""] = usual;

  test("the order is the same each time, within priorities, and told", () => {
    for (let run = 0; run < 50; run += 1) expect(order()).toBe(usual);
    expect(usual).toMatch(/^[abc]{3}[de]{2}$/);
    expect(listed().map(({ why }) => why)).toEqual([
      "priority 1, weight 1 of 3; affinity: session, rank 1",
      "priority 1, weight 1 of 3; affinity: session, rank 2",
      "priority 1, weight 1 of 3; affinity: session, rank 3",
      "priority 2, weight 1 of 2; affinity: session, rank 1",
      "priority 2, weight 1 of 2; affinity: session, rank 2",
    ]);
  });

  test("a target that is out comes last, keeps its rank, and is first again once it works", () => {
    const views = { [first]: out(2_000) };
    expect(order({}, views)).toBe(usual.slice(1) + first);
    expect(listed({}, views).at(-1)?.why).toBe(
      "last resort; out for 2 s: 5 failures in a row; affinity: session, rank 1",
    );
    expect(order()).toBe(usual);
  });

  test("a target with more than its share in flight comes after the next rank", () => {
    expect(order({ [first]: 3 })).toBe(usual);
    expect(order({ [first]: 4 })).toBe(second + third + first + usual.slice(3));
    expect(listed({ [first]: 9, [second]: 1 })[2]?.why).toBe(
      "priority 1, weight 1 of 3; affinity: session, rank 1, " +
        "yields to load: 9 calls in flight, at most 5 by its weight",
    );
    // All the others have as many.
    expect(order({ a: 9, b: 9, c: 9 })).toBe(usual);
    // Those that are out take no share.
    expect(order({ [first]: 5 }, { [second]: out(500) })[0]).toBe(third);
  });

  test("a target that wrote the conversation's thoughts comes first", () => {
    expect(order({}, {}, third)).toBe(third + first + second + usual.slice(3));
  });

  test("a target that is alone in its priority has no rank", () => {
    const alone = groupOf([a, targetOf("b", { priority: 2 })], {});
    const services = { random: Math.random, health: idle };
    const found = listCandidates([alone], services, session);
    expect(found.map(({ why, rank }) => [why, rank])).toEqual([
      ["priority 1", undefined],
      ["priority 2", undefined],
    ]);
  });
});
