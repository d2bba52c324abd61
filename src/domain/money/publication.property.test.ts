import { expect, test } from "bun:test";
import fc from "fast-check";
import { runsOf } from "../../../test/support/requirement.ts";
import { type PriceTable, PublishedPrices, type TargetPrice } from "./price.ts";
import { planPublication, type WantedPrices } from "./publication.ts";

const targets = ["a", "b", "c"];
const horizon = 200;

/** A configuration: which targets it has, what they cost, and from when on they cost something else. */
const configuration = fc.record({
  passedMs: fc.integer({ min: 1, max: 20 }),
  configured: fc.subarray(targets),
  prices: fc.dictionary(fc.constantFrom(...targets), fc.integer({ min: 0, max: 3 })),
  later: fc.uniqueArray(
    fc.record({
      inMs: fc.integer({ min: 1, max: 60 }),
      target: fc.constantFrom(...targets),
      price: fc.integer({ min: 0, max: 3 }),
    }),
    { selector: ({ inMs }) => inMs, maxLength: 3 },
  ),
});
type Configuration = typeof configuration extends fc.Arbitrary<infer Value> ? Value : never;

function dollars(input: number | undefined): TargetPrice | undefined {
  return input === undefined
    ? undefined
    : { price: { input }, source: "test", confidence: "configured" };
}

function wantedBy({ configured, prices, later }: Configuration, now: number): WantedPrices[] {
  const dates = later.map(({ inMs }) => now + inMs).toSorted((one, other) => one - other);
  return [now, ...dates].map((validFrom) => {
    const current: Record<string, number> = { ...prices };
    for (const { inMs, target, price } of later.toSorted((one, other) => one.inMs - other.inMs)) {
      if (now + inMs <= validFrom) current[target] = price;
    }
    const priced = configured.map((target) => [target, dollars(current[target])] as const);
    return { validFrom, prices: new Map(priced) };
  });
}

test("after any changes, calls cost what the last configuration says, and earlier calls what they did", () => {
  fc.assert(
    fc.property(fc.array(configuration, { minLength: 1, maxLength: 12 }), (configurations) => {
      let tables: readonly PriceTable[] = [];
      let lastVersion = 0;
      let now = 0;
      let before = new PublishedPrices();
      let first: number | undefined;
      for (const each of configurations) {
        now += each.passedMs;
        const wanted = wantedBy(each, now);
        const { published, withdrawn } = planPublication(tables, wanted, lastVersion);
        for (const version of withdrawn) {
          const table = tables.find((known) => known.version === version);
          expect(table?.validFrom).toBeGreaterThan(now);
        }
        tables = [...tables.filter(({ version }) => !withdrawn.includes(version)), ...published];
        lastVersion += published.length;
        expect(published.map(({ version }) => version)).toEqual(
          published.map((_, index) => lastVersion - published.length + 1 + index),
        );
        const book = new PublishedPrices();
        book.publish(tables, now);
        first ??= now;
        for (let at = first; at < horizon; at += 1) {
          const prices = wanted.findLast(({ validFrom }) => validFrom <= at)?.prices;
          for (const target of targets) {
            const found = book.find(target, at);
            if (at < now) expect(found).toEqual(before.find(target, at));
            else if (prices?.has(target) === true) {
              expect(found?.price).toEqual(prices.get(target)?.price);
            }
          }
        }
        // Publishing again publishes nothing.
        expect(planPublication(tables, wanted, lastVersion)).toEqual({
          published: [],
          withdrawn: [],
        });
        before = book;
      }
    }),
    { numRuns: runsOf(500) },
  );
});
