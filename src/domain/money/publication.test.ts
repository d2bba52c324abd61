import { expect, test } from "bun:test";
import type { PriceTable, TargetPrice } from "./price.ts";
import { planPublication } from "./publication.ts";

const dollars = (input: number): TargetPrice => ({
  price: { input },
  source: "test",
  confidence: "configured",
});
const wanted = (validFrom: number, prices: Readonly<Record<string, TargetPrice | undefined>>) => ({
  validFrom,
  prices: new Map(Object.entries(prices)),
});
const table = (version: number, validFrom: number, targets: PriceTable["targets"]): PriceTable => ({
  version,
  validFrom,
  targets,
});

test("the first table is published, without prices, too", () => {
  const first = planPublication([], [wanted(10, { a: dollars(1), b: undefined })], 0);
  expect(first).toEqual({ published: [table(1, 10, { a: dollars(1) })], withdrawn: [] });
  const later = [wanted(10, { b: undefined }), wanted(90, { b: dollars(1) })];
  expect(planPublication([], later, 0).published).toEqual([
    table(1, 10, {}),
    table(2, 90, { b: dollars(1) }),
  ]);
});

test("the same prices publish nothing, in any order", () => {
  const tables = [table(1, 10, { a: dollars(1), b: dollars(2) })];
  const same = wanted(20, { b: dollars(2), a: dollars(1) });
  expect(planPublication(tables, [same], 1)).toEqual({ published: [], withdrawn: [] });
});

test("a target that lost its price has none in the next table; one that is gone keeps it", () => {
  const tables = [table(1, 10, { a: dollars(1), b: dollars(2), gone: dollars(3) })];
  const { published } = planPublication(tables, [wanted(20, { a: undefined, b: dollars(2) })], 1);
  expect(published).toEqual([table(2, 20, { gone: dollars(3), b: dollars(2) })]);
});

test("later prices are a table of their own, and begin with what applies before", () => {
  const plan = planPublication(
    [table(1, 10, { a: dollars(1) })],
    [wanted(20, { a: dollars(1) }), wanted(90, { a: dollars(2) }), wanted(95, { a: dollars(2) })],
    1,
  );
  expect(plan.published).toEqual([table(2, 90, { a: dollars(2) })]);
});

test("a later table is published again with a target that came since", () => {
  const tables = [table(1, 10, { a: dollars(1) }), table(2, 90, { a: dollars(2) })];
  const plan = planPublication(
    tables,
    [wanted(20, { a: dollars(1), b: dollars(5) }), wanted(90, { a: dollars(2), b: dollars(5) })],
    2,
  );
  expect(plan).toEqual({
    published: [
      table(3, 20, { a: dollars(1), b: dollars(5) }),
      table(4, 90, { a: dollars(2), b: dollars(5) }),
    ],
    withdrawn: [],
  });
});

test("a later table that is not wanted any more is withdrawn; one that has begun is not", () => {
  const tables = [table(1, 10, { a: dollars(1) }), table(2, 90, { a: dollars(2) })];
  expect(planPublication(tables, [wanted(20, { a: dollars(1) })], 2)).toEqual({
    published: [],
    withdrawn: [2],
  });
  const { published, withdrawn } = planPublication(tables, [wanted(90, { a: dollars(1) })], 2);
  expect(published).toEqual([table(3, 90, { a: dollars(1) })]);
  expect(withdrawn).toEqual([]);
});
