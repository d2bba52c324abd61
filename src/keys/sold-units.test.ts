import { expect, test } from "bun:test";
import fc from "fast-check";
import { plainKey } from "../../test/support/plain-key.ts";
import type { Key } from "../domain/keys/key.ts";
import { unitsIn } from "../domain/limits/capacity.ts";
import { SoldUnits } from "./sold-units.ts";

type Change = readonly [keyId: string, key: Key | undefined];

function change(sold: SoldUnits, changes: readonly Change[]): void {
  for (const [keyId, key] of changes) sold.set(keyId, key);
}

function holder(provisionedPool: string | undefined, provisionedUnits: number, expiresAt?: number) {
  return plainKey({ provisionedPool, provisionedUnits, expiresAt });
}

test("the units of a key are free from its expiry, and held again when the expiry is moved", () => {
  const sold = new SoldUnits();
  change(sold, [
    ["key_a", holder("main", 3)],
    ["key_b", holder("main", 4, 1_000)],
    ["key_c", holder("main", 8, 2_000)],
  ]);
  expect([0, 999, 1_000, 1_999, 2_000].map((now) => unitsIn(sold.of("main", now)))).toEqual([
    15, 15, 11, 11, 3,
  ]);
  // The clock is set back.
  expect(unitsIn(sold.of("main", 500))).toBe(15);
  expect(unitsIn(sold.of("main", 2_500))).toBe(3);
  change(sold, [["key_b", holder("main", 4, 3_000)]]);
  expect(unitsIn(sold.of("main", 2_500))).toBe(7);
});

const anyKey = fc.record({
  pool: fc.constantFrom("main", "other", undefined),
  units: fc.nat(5),
  expiresAt: fc.option(fc.nat(100), { nil: undefined }),
});
const anyChange = fc.tuple(fc.nat(7), fc.option(anyKey, { nil: undefined }));
const anyHistory = fc.array(
  fc.record({ changes: fc.array(anyChange, { maxLength: 8 }), at: fc.nat(120) }),
  { maxLength: 20 },
);

test("after any changes the sums match the remaining keys", () => {
  fc.assert(
    fc.property(anyHistory, (history) => {
      const model = new Map<string, Key>();
      const sold = new SoldUnits();
      for (const { changes, at } of history) {
        const given = changes.map(([number, key]): Change => {
          const made = key && holder(key.pool, key.units, key.expiresAt);
          return [`key_${number}`, made];
        });
        for (const [keyId, key] of given) {
          if (key === undefined) model.delete(keyId);
          else model.set(keyId, key);
        }
        change(sold, given);
        check(sold, model, at);
      }
    }),
    { numRuns: 500 },
  );
});

/** Sums recomputed from all keys. */
function check(sold: SoldUnits, keys: ReadonlyMap<string, Key>, now: number): void {
  const expected = new Map<string, number>();
  const holdings = new Map<string, Map<number, number>>();
  for (const [keyId, key] of keys) {
    const { provisionedPool: pool, provisionedUnits: units, expiresAt = Infinity } = key;
    const isLive = pool === "main" && expiresAt > now;
    expect(sold.ofKey({ pool: "main", keyId }, now)).toBe(isLive ? units : 0);
    if (pool === undefined || units === 0 || expiresAt <= now) continue;
    expected.set(pool, (expected.get(pool) ?? 0) + units);
    const keys = holdings.get(pool) ?? new Map<number, number>();
    holdings.set(pool, keys.set(units, (keys.get(units) ?? 0) + 1));
  }
  expect(Object.fromEntries(sold.all(now))).toEqual(Object.fromEntries(expected));
  for (const pool of ["main", "other", "third"]) {
    expect(sold.of(pool, now)).toEqual(holdings.get(pool) ?? new Map());
  }
}
