import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import {
  countedSlots,
  guaranteeLimit,
  guaranteeSlots,
  longestGuaranteeSeconds,
  slotAt,
  slotLifeMs,
} from "../../domain/limits/slots.ts";
import { UsageWindow } from "./window.ts";

const limit = 100;

describe("usage window", () => {
  test("counts a slot from its own second until 60 further slots have begun", () => {
    const window = new UsageWindow(10);
    window.charge(40);
    window.advance(10 + countedSlots - 1);
    expect(window.at(10)).toBe(40);
    expect(window.remaining(limit)).toBe(60);
    window.advance(10 + countedSlots);
    expect(window.at(10)).toBe(0);
    expect(window.remaining(limit)).toBe(100);
  });

  test("drops slot by slot, also after many rounds of its ring", () => {
    const window = new UsageWindow(0);
    for (let slot = 0; slot < 1_000; slot++) {
      window.advance(slot);
      window.charge(slot);
      const oldest = Math.max(0, slot - countedSlots + 1);
      let counted = 0;
      for (let recent = oldest; recent <= slot; recent++) counted += recent;
      expect(window.remaining(1_000_000)).toBe(1_000_000 - counted);
    }
  });

  test.each([61, 62, 64, 125, 128, 100_000])("is empty after %d slots without use", (silence) => {
    const window = new UsageWindow(5);
    window.charge(7);
    window.advance(6);
    window.charge(7);
    window.advance(6 + silence);
    expect(window.remaining(limit)).toBe(100);
    expect(window.resetMs((6 + silence) * 1_000)).toBe(0);
  });

  test("never goes back to an earlier slot", () => {
    const window = new UsageWindow(100);
    window.charge(10);
    window.advance(39);
    window.charge(10);
    window.advance(160);
    expect(window.remaining(limit)).toBe(80);
    window.advance(161);
    expect(window.remaining(limit)).toBe(100);
  });

  test("accepts exactly up to its limit", () => {
    const window = new UsageWindow(0);
    expect(window.isOver(limit, 100)).toBe(false);
    expect(window.isOver(limit, 101)).toBe(true);
    for (let count = 0; count < 2; count++) window.charge(20);
    expect(window.isOver(limit, 60)).toBe(false);
    expect(window.isOver(limit, 61)).toBe(true);
  });

  test("corrects the charged slot, but no expired slot", () => {
    const window = new UsageWindow(0);
    window.charge(80);
    window.advance(30);
    window.charge(10);
    expect(window.adjust(0, -50)).toBe(true);
    expect(window.remaining(limit)).toBe(60);
    window.advance(61);
    expect(window.adjust(0, -50)).toBe(false);
    expect(window.adjust(0, 50)).toBe(false);
    expect(window.remaining(limit)).toBe(90);
  });

  test("does not correct a future slot", () => {
    const window = new UsageWindow(5);
    expect(window.adjust(6, 10)).toBe(false);
    expect(window.remaining(limit)).toBe(100);
  });

  test("counts a debt in the current slot", () => {
    const window = new UsageWindow(0);
    window.advance(7);
    window.chargeMore(30);
    expect(window.remaining(limit)).toBe(70);
    expect(window.resetMs(7_500)).toBe(60_500);
  });

  test("has no wait for what fits, and none that ends for what never does", () => {
    const window = new UsageWindow(0);
    expect(window.waitMs(limit, 100, 500)).toBe(0);
    expect(window.waitMs(limit, 101, 500)).toBeUndefined();
    expect(window.waitMs(0, 1, 500)).toBeUndefined();
  });

  test("waits until just enough has expired", () => {
    const window = new UsageWindow(0);
    window.charge(90);
    window.advance(10);
    window.charge(5);
    window.advance(20);
    window.charge(5);
    expect(window.waitMs(limit, 80, 20_000)).toBe(41_000);
    expect(window.waitMs(limit, 91, 20_000)).toBe(51_000);
    expect(window.waitMs(limit, 96, 20_000)).toBe(61_000);
    expect(window.waitMs(limit, 1, 20_250.5)).toBe(40_749.5);
  });

  test("is free again when its newest used slot expires", () => {
    const window = new UsageWindow(0);
    window.charge(10);
    window.advance(3);
    window.charge(0);
    expect(window.resetMs(3_000)).toBe(58_000);
  });

  test("has nothing left, and not less, when the limit is lowered below the counted use", () => {
    const window = new UsageWindow(0);
    for (let count = 0; count < 3; count++) window.charge(30);
    expect(window.remaining(50)).toBe(0);
  });

  test("reverts one unit of a counted slot, and none of an empty or expired slot", () => {
    const window = new UsageWindow(0);
    window.charge(1);
    window.uncount(0);
    window.uncount(0);
    expect(window.remaining(limit)).toBe(100);
    window.charge(1);
    window.advance(61);
    window.charge(1);
    window.uncount(0);
    expect(window.remaining(limit)).toBe(99);
  });
});

describe("a window with a variable number of slots", () => {
  test("agrees with a plain list of all charges, for any sequence of operations", () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant("pass" as const), slots: fc.nat(200) }),
      fc.record({ kind: fc.constant("charge" as const), tokens: fc.nat(50) }),
      fc.record({ kind: fc.constant("count" as const), slots: fc.integer({ min: 1, max: 300 }) }),
      fc.record({ kind: fc.constant("refund" as const), charge: fc.nat(30) }),
    );
    fc.assert(
      fc.property(fc.nat(10_000), fc.array(step, { maxLength: 60 }), (start, steps) => {
        let slot = start;
        let counted = 59;
        let kept = 59;
        const window = new UsageWindow(start, counted);
        const charges: { slot: number; tokens: number }[] = [];
        // Charges outside every window for a while may be kept, but need not be.
        const forgotten: { slot: number; tokens: number }[] = [];
        for (const next of steps) {
          switch (next.kind) {
            case "pass":
              slot += next.slots;
              window.advance(slot);
              while ((charges[0]?.slot ?? slot) <= slot - kept) {
                forgotten.push(...charges.splice(0, 1));
              }
              break;
            case "charge":
              window.charge(next.tokens);
              charges.push({ slot, tokens: next.tokens });
              break;
            case "count":
              counted = next.slots;
              kept = Math.max(kept, counted);
              window.count(counted);
              break;
            case "refund": {
              const charge = charges[next.charge % (charges.length + 1)];
              if (charge === undefined) break;
              expect(window.adjust(charge.slot, -charge.tokens)).toBe(true);
              charge.tokens = 0;
              break;
            }
          }
          const isCounted = (charge: { slot: number }) => charge.slot > slot - counted;
          const tokens = sumOf(charges.filter(isCounted));
          const used = 1e9 - window.remaining(1e9);
          expect(used).toBeGreaterThanOrEqual(tokens);
          expect(used).toBeLessThanOrEqual(tokens + sumOf(forgotten.filter(isCounted)));
        }
      }),
      { numRuns: 500 },
    );
  });

  test("counts again in a longer window what a shorter one left out", () => {
    const window = new UsageWindow(0, 120);
    window.charge(10);
    window.advance(100);
    window.count(59);
    expect(window.remaining(1e9)).toBe(1e9);
    expect(window.at(0)).toBe(0);
    window.count(1_000);
    expect(window.remaining(1e9)).toBe(1e9 - 10);
    expect(window.at(0)).toBe(10);
    window.advance(999);
    expect(window.waitMs(10, 1, 999_000)).toBe(1_000);
    window.advance(1_000);
    expect(window.remaining(1e9)).toBe(1e9);
  });
});

function sumOf(charges: readonly { readonly tokens: number }[]): number {
  return charges.reduce((sum, { tokens }) => sum + tokens, 0);
}

test("a guarantee counts one slot less than it has seconds, and has its share of tokens", () => {
  expect([60, 90, 3_600, 1e9, 0].map(guaranteeSlots)).toEqual([
    59,
    89,
    3_599,
    longestGuaranteeSeconds - 1,
    1,
  ]);
  expect([guaranteeLimit(101, 90), guaranteeLimit(Infinity, 90)]).toEqual([151, Infinity]);
});

test("a slot is one second, and counts until 61 later ones have begun", () => {
  expect([0, 999.9, 1_000, 61_500].map(slotAt)).toEqual([0, 0, 1, 61]);
  expect(slotLifeMs(2, 2_500)).toBe(60_500);
});
