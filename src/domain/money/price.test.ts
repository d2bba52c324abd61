import { expect, test } from "bun:test";
import { PublishedPrices, type PriceTable } from "./price.ts";

function table(version: number, validFrom: number, input: number): PriceTable {
  const target = { price: { input }, source: "test", confidence: "configured" as const };
  return { version, validFrom, targets: { "a/b": target } };
}

test("a call has the newest table whose time had come when it arrived", () => {
  const book = new PublishedPrices();
  expect([book.find("a/b", 5), book.isEmpty]).toEqual([undefined, true]);
  book.publish([table(1, 10, 1), table(2, 30, 2), table(3, 20, 3), table(4, 20, 4)], 0);
  const versions = [9, 10, 19, 20, 29, 30, 99].map((at) => book.find("a/b", at)?.version);
  // Before the first one, as after a step of the clock, that one applies.
  expect(versions).toEqual([1, 1, 1, 4, 4, 2, 2]);
  expect(book.find("a/b", 25)?.price).toEqual({ input: 4 });
  expect([book.find("a/other", 25), book.isEmpty]).toEqual([undefined, false]);
});

test("a target that a later table lacks has no price any more", () => {
  const book = new PublishedPrices();
  book.publish([table(1, 10, 1), { version: 2, validFrom: 20, targets: {} }], 0);
  expect(book.find("a/b", 15)?.version).toBe(1);
  expect(book.find("a/b", 25)).toBeUndefined();
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
