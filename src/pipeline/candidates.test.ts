import { expect, test } from "bun:test";
import fc from "fast-check";
import { modelOf, snapshotOf, targetOf } from "../../test/support/pipeline-fixtures.ts";
import { listCandidates } from "./candidates.ts";

const upstreams = ["a", "b", "c"];
const snapshot = snapshotOf(upstreams);

function orderOf(targets: ReturnType<typeof targetOf>[], random = Math.random): string[] {
  return listCandidates(modelOf({ targets }), snapshot, random).map(
    ({ target }) => target.upstream,
  );
}

test("targets of a lower priority number always come first", () => {
  const targets = [
    targetOf("c", { priority: 3, weight: 1_000 }),
    targetOf("a", { priority: 1 }),
    targetOf("b", { priority: 2, weight: 1_000 }),
  ];
  for (let run = 0; run < 200; run += 1) expect(orderOf(targets)).toEqual(["a", "b", "c"]);
});

test("within one priority the first is drawn by weight", () => {
  const targets = [targetOf("a", { weight: 1 }), targetOf("b", { weight: 3 })];
  let state = 1;
  // A fixed sequence, so that the shares below are the same in every run.
  const random = (): number => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
  let first = 0;
  for (let run = 0; run < 10_000; run += 1) if (orderOf(targets, random)[0] === "b") first += 1;
  expect(first / 10_000).toBeGreaterThan(0.73);
  expect(first / 10_000).toBeLessThan(0.77);
});

test("every target is a candidate exactly once, whatever the weights and the draw", () => {
  const anyTarget = fc.record({
    priority: fc.integer({ min: 1, max: 3 }),
    weight: fc.integer({ min: 1, max: 50 }),
  });
  const draw = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
  fc.assert(
    fc.property(fc.tuple(anyTarget, anyTarget, anyTarget), draw, (values, number) => {
      const targets = values.map((value, index) => targetOf(upstreams[index] ?? "", value));
      expect(orderOf(targets, () => number).toSorted()).toEqual(upstreams);
    }),
  );
});

test("a target whose upstream the snapshot does not have is left out", () => {
  expect(orderOf([targetOf("a"), targetOf("gone")])).toEqual(["a"]);
});
