import { expect, test } from "bun:test";
import fc from "fast-check";
import { runsOf } from "../../../test/support/requirement.ts";
import { nextTable, PublishedPrices, type PriceTable, type TargetPrice } from "./price.ts";

function dollars(input: number): TargetPrice {
  return { price: { input }, source: "test", confidence: "configured" };
}

function table(version: number, validFrom: number, input: number): PriceTable {
  return { version, validFrom, targets: { "a/b": dollars(input) } };
}

const wanted = (prices: Readonly<Record<string, TargetPrice | undefined>>) =>
  new Map(Object.entries(prices));

test("a call has the newest table whose time had come when it arrived", () => {
  const book = new PublishedPrices();
  expect([book.find("a/b", 5), book.isPublished("a/b", 5)]).toEqual([undefined, false]);
  book.publish([table(1, 10, 1), table(2, 20, 3), table(3, 20, 4), table(4, 30, 2)], 0);
  const versions = [9, 10, 19, 20, 29, 30, 99].map((at) => book.find("a/b", at)?.version);
  // Before the first one, as after a step of the clock, that one applies.
  expect(versions).toEqual([1, 1, 1, 3, 3, 4, 4]);
  expect(book.find("a/b", 25)?.price).toEqual({ input: 4 });
  expect([book.find("a/other", 25), book.isPublished("a/other", 25)]).toEqual([undefined, false]);
});

test("a target without a price is known to have none", () => {
  const book = new PublishedPrices();
  book.publish([table(1, 10, 1), { version: 2, validFrom: 20, targets: { "a/b": null } }], 0);
  expect(book.find("a/b", 15)?.version).toBe(1);
  expect([book.find("a/b", 25), book.isPublished("a/b", 25)]).toEqual([undefined, true]);
});

test("the first table is published, without prices, too", () => {
  expect(nextTable(undefined, wanted({}), 10)).toEqual({ version: 1, validFrom: 10, targets: {} });
  const prices = wanted({ a: dollars(1), b: undefined });
  const first = { version: 1, validFrom: 10, targets: { a: dollars(1), b: null } };
  expect(nextTable(undefined, prices, 10)).toEqual(first);
});

test("the same prices publish nothing, in any order", () => {
  const newest = { version: 1, validFrom: 10, targets: { a: dollars(1), b: dollars(2), c: null } };
  const same = wanted({ c: undefined, b: dollars(2), a: dollars(1) });
  expect(nextTable(newest, same, 20)).toBeUndefined();
});

test("a target that lost its price has none in the next table; one that is gone keeps it", () => {
  const newest = { version: 1, validFrom: 10, targets: { a: dollars(1), gone: dollars(3) } };
  expect(nextTable(newest, wanted({ a: undefined, b: dollars(2) }), 20)).toEqual({
    version: 2,
    validFrom: 20,
    targets: { a: null, gone: dollars(3), b: dollars(2) },
  });
});

test("after any changes and steps of the clock, calls cost what was published before they arrived", () => {
  const targets = ["a", "b", "c"];
  const configuration = fc.record({
    now: fc.integer({ min: 1, max: 100 }),
    configured: fc.subarray(targets),
    prices: fc.dictionary(fc.constantFrom(...targets), fc.integer({ min: 0, max: 3 })),
  });
  fc.assert(
    fc.property(fc.array(configuration, { minLength: 1, maxLength: 12 }), (configurations) => {
      let tables: readonly PriceTable[] = [];
      let before = new PublishedPrices();
      for (const { now, configured, prices } of configurations) {
        const of = (target: string) =>
          prices[target] === undefined ? undefined : dollars(prices[target]);
        const all = new Map(configured.map((target) => [target, of(target)]));
        const next = nextTable(tables.at(-1), all, now);
        if (next !== undefined) tables = [...tables, next];
        expect(nextTable(tables.at(-1), all, now)).toBeUndefined();
        const book = new PublishedPrices();
        book.publish(tables, 0);
        const begin = tables.at(-1)?.validFrom ?? 0;
        for (let at = 1; at < 120; at += 1) {
          for (const target of targets) {
            const found = book.find(target, at);
            if (at < begin && tables.length > 1) {
              expect(found).toEqual(before.find(target, at));
            } else if (at >= begin && all.has(target)) {
              expect(found?.price).toEqual(all.get(target)?.price);
              expect(book.isPublished(target, at)).toBe(true);
            }
          }
        }
        before = book;
      }
    }),
    { numRuns: runsOf(300) },
  );
});

test("a price that is heard late is not that of calls that were admitted with another one", () => {
  const book = new PublishedPrices();
  book.publish([table(1, 10, 1)], 20);
  expect([11, 20].map((at) => book.find("a/b", at)?.version)).toEqual([1, 1]);
  book.publish([table(1, 10, 1), table(2, 30, 2)], 40);
  expect([30, 40, 41].map((at) => book.find("a/b", at)?.version)).toEqual([1, 1, 2]);
  // It begins once.
  book.publish([table(1, 10, 1), table(2, 30, 2), table(3, 60, 3)], 50);
  expect([40, 41, 59, 60].map((at) => book.find("a/b", at)?.version)).toEqual([1, 2, 2, 3]);
});
