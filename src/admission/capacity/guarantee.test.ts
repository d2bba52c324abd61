import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import {
  floorTokens,
  guaranteedTokens,
  heldTokens,
  sellableUnits,
  unitsIn,
  type Pool,
} from "../../domain/limits/capacity.ts";
import { guaranteeSeconds, keptPlaces, keyPlaces, openPlaces, openTokens } from "./guarantee.ts";

const pool: Pool = {
  name: "shared",
  kind: "shared",
  tokensPerMinute: 1_000_000,
  maxInFlight: 100,
  onDemandFloorPercent: 20,
  unitTokensPerMinute: 10_000,
};

const anyPool = fc.record({
  name: fc.constant("any"),
  kind: fc.constantFrom("shared" as const, "dedicated" as const),
  tokensPerMinute: fc.integer({ min: 1, max: 10_000_000 }),
  maxInFlight: fc.option(fc.integer({ min: 1, max: 1_000 }), { nil: undefined }),
  onDemandFloorPercent: fc.integer({ min: 0, max: 99 }),
  unitTokensPerMinute: fc.integer({ min: 1, max: 100_000 }),
});

describe("the period of a guarantee", () => {
  test.each([
    [200_000, 10_000, 1_200],
    [128_000, 10_000, 780],
    [8_000, 10_000, 60],
    [10_000, 10_000, 60],
    [10_001, 10_000, 120],
    [200_000, 1_000, 3_600],
    [200_000, 0, 60],
  ])(
    "for requests of up to %d tokens at %d a minute is %d s",
    (largest, tokensPerMinute, seconds) => {
      expect(guaranteeSeconds(tokensPerMinute, largest)).toBe(seconds);
    },
  );

  test("has room for the largest request, unless an hour does not", () => {
    fc.assert(
      fc.property(fc.nat(1_000_000), fc.integer({ min: 1, max: 1_000_000 }), (largest, rate) => {
        const seconds = guaranteeSeconds(rate, largest);
        expect(seconds % 60).toBe(0);
        const holds = (rate * seconds) / 60 >= largest;
        expect(holds || seconds === 3_600).toBe(true);
      }),
    );
  });
});

describe("the unsold part of a pool", () => {
  test("is open to all, and shrinks with every sold unit", () => {
    expect([openTokens(pool, 0), openPlaces(pool, 0)]).toEqual([1_000_000, 100]);
    expect([openTokens(pool, 10), openPlaces(pool, 10)]).toEqual([898_305, 89]);
    expect(sellableUnits(pool)).toBe(78);
    expect([openTokens(pool, 78), openPlaces(pool, 78)]).toEqual([206_779, 20]);
  });

  test("is never less than the floor while the pool is not oversold", () => {
    fc.assert(
      fc.property(anyPool, fc.double({ min: 0, max: 1, noNaN: true }), (drawn, share) => {
        const units = Math.floor(sellableUnits(drawn) * share);
        const open = openTokens(drawn, units);
        expect(open).toBeGreaterThanOrEqual(floorTokens(drawn));
        const held = heldTokens(guaranteedTokens(units, drawn));
        expect(open + held).toBe(drawn.tokensPerMinute);
      }),
    );
  });

  test("has its share of the places, and at least one if there are two", () => {
    fc.assert(
      fc.property(anyPool, fc.nat(500), (drawn, units) => {
        const places = drawn.maxInFlight ?? Infinity;
        const open = openPlaces(drawn, units);
        const tokens = openTokens(drawn, units);
        expect(open).toBeLessThanOrEqual(places);
        if (tokens > 0 && places > 1) expect(open).toBeGreaterThanOrEqual(1);
        if (places === Infinity) return;
        const share = places * (tokens / drawn.tokensPerMinute);
        expect(open).toBeLessThanOrEqual(Math.max(share + 1e-6, 1));
        expect(open).toBeGreaterThan(share - 1 - 1e-6);
      }),
    );
  });

  test("is nothing in an oversold pool", () => {
    const smaller = { ...pool, tokensPerMinute: 100_000 };
    expect([openTokens(smaller, 50), openPlaces(smaller, 50)]).toEqual([0, 0]);
    expect(openPlaces({ ...pool, maxInFlight: 1 }, 10)).toBe(0);
    const unbounded = { ...smaller, maxInFlight: undefined };
    expect(openPlaces(unbounded, 50)).toBe(Infinity);
  });
});

describe("the places of keys", () => {
  test("are their units' share of the pool, in whole places", () => {
    const small = { ...pool, maxInFlight: 8 };
    expect([0, 1, 40].map((units) => keyPlaces(units, pool))).toEqual([0, 1, 40]);
    expect([1, 12, 13, 40].map((units) => keyPlaces(units, small))).toEqual([0, 0, 1, 3]);
    expect(keyPlaces(40, { ...pool, maxInFlight: undefined })).toBe(0);
  });

  test("are reserved for all keys together, and leave the share of other calls", () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 1, max: 30 }), { maxLength: 20 }),
        fc.integer({ min: 1, max: 200 }),
        (sales, maxInFlight) => {
          const sized = { ...pool, maxInFlight };
          let left = sellableUnits(sized);
          const holdings = new Map<number, number>();
          let own = 0;
          for (const wanted of sales) {
            const units = Math.min(wanted, left);
            if (units === 0) break;
            left -= units;
            holdings.set(units, (holdings.get(units) ?? 0) + 1);
            own += keyPlaces(units, sized);
          }
          expect(keptPlaces(sized, holdings)).toBe(own);
          expect(own + openPlaces(sized, unitsIn(holdings))).toBeLessThanOrEqual(maxInFlight);
        },
      ),
    );
  });

  test("leave one for other calls in an oversold pool", () => {
    expect(keptPlaces(pool, new Map([[70, 2]]))).toBe(99);
  });
});
