import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import {
  countedSlots,
  guaranteeLimits,
  guaranteeSlots,
  impossibleDimension,
  longestGuaranteeSeconds,
  slotAt,
  slotLifeMs,
} from "./slots.ts";
import { UsageWindow } from "./window.ts";

const limits = { requestsPerMinute: 3, tokensPerMinute: 100 };

/** Asked by one request. */
const one = (tokens: number) => ({ requests: 1, tokens });

describe("usage window", () => {
  test("counts a slot from its own second until 60 further slots have begun", () => {
    const window = new UsageWindow(10);
    window.charge(one(40));
    window.advance(10 + countedSlots - 1);
    expect(window.counts(10)).toBe(true);
    expect(window.state(limits, 70_000).remainingTokens).toBe(60);
    window.advance(10 + countedSlots);
    expect(window.counts(10)).toBe(false);
    expect(window.state(limits, 71_000).remainingTokens).toBe(100);
  });

  test("forgets slot by slot, also when its ring has gone round many times", () => {
    const window = new UsageWindow(0);
    for (let slot = 0; slot < 1_000; slot++) {
      window.advance(slot);
      window.charge(one(slot));
      const oldest = Math.max(0, slot - countedSlots + 1);
      let counted = 0;
      for (let recent = oldest; recent <= slot; recent++) counted += recent;
      const roomy = { requestsPerMinute: 1_000, tokensPerMinute: 1_000_000 };
      const state = window.state(roomy, slot * 1_000);
      expect(state.remainingTokens).toBe(1_000_000 - counted);
      expect(state.remainingRequests).toBe(1_000 - (slot - oldest + 1));
    }
  });

  test.each([61, 62, 64, 125, 128, 100_000])("is empty after %d slots of silence", (silence) => {
    const window = new UsageWindow(5);
    window.charge(one(7));
    window.advance(6);
    window.charge(one(7));
    window.advance(6 + silence);
    const state = window.state(limits, (6 + silence) * 1_000);
    expect(state).toMatchObject({ remainingRequests: 3, remainingTokens: 100 });
    expect(state).toMatchObject({ resetRequestsMs: 0, resetTokensMs: 0 });
  });

  test("never goes back to an earlier slot", () => {
    const window = new UsageWindow(100);
    window.charge(one(10));
    window.advance(39);
    window.charge(one(10));
    window.advance(160);
    expect(window.state(limits, 160_000).remainingTokens).toBe(80);
    window.advance(161);
    expect(window.state(limits, 161_000).remainingTokens).toBe(100);
  });

  test("takes exactly up to its limits", () => {
    const window = new UsageWindow(0);
    expect(window.brokenDimension(limits, one(100))).toBeUndefined();
    expect(window.brokenDimension(limits, one(101))).toBe("tokens");
    for (let count = 0; count < 2; count++) window.charge(one(20));
    expect(window.brokenDimension(limits, one(60))).toBeUndefined();
    expect(window.brokenDimension(limits, one(61))).toBe("tokens");
    window.charge(one(0));
    expect(window.brokenDimension(limits, one(0))).toBe("requests");
  });

  test("corrects the slot that was charged, and no slot that has left", () => {
    const window = new UsageWindow(0);
    window.charge(one(80));
    window.advance(30);
    window.charge(one(10));
    expect(window.adjust(0, -50)).toBe(true);
    expect(window.state(limits, 30_000).remainingTokens).toBe(60);
    window.advance(61);
    expect(window.adjust(0, -50)).toBe(false);
    expect(window.adjust(0, 50)).toBe(false);
    expect(window.state(limits, 61_000).remainingTokens).toBe(90);
  });

  test("does not correct a slot of the future", () => {
    const window = new UsageWindow(5);
    expect(window.adjust(6, 10)).toBe(false);
    expect(window.state(limits, 5_000).remainingTokens).toBe(100);
  });

  test("counts a debt in the current slot, and not as a request", () => {
    const window = new UsageWindow(0);
    window.advance(7);
    window.chargeMore(30);
    const state = window.state(limits, 7_500);
    expect(state).toMatchObject({ remainingRequests: 3, remainingTokens: 70 });
    expect(state).toMatchObject({ resetRequestsMs: 0, resetTokensMs: 60_500 });
  });

  test("waits not at all when the request fits, and without end when it never does", () => {
    const window = new UsageWindow(0);
    expect(window.waitMs(limits, one(100), 500)).toBe(0);
    expect(window.waitMs(limits, one(101), 500)).toBeUndefined();
    const closed = { requestsPerMinute: 0, tokensPerMinute: 100 };
    expect(window.waitMs(closed, one(1), 500)).toBeUndefined();
  });

  test("waits for the later of requests and tokens", () => {
    const window = new UsageWindow(0);
    window.charge(one(90));
    window.advance(10);
    window.charge(one(5));
    window.advance(20);
    window.charge(one(5));
    expect(window.waitMs(limits, one(80), 20_000)).toBe(41_000);
    expect(window.waitMs(limits, one(91), 20_000)).toBe(51_000);
    expect(window.waitMs(limits, one(96), 20_000)).toBe(61_000);
    expect(window.waitMs(limits, one(0), 20_250.5)).toBe(40_749.5);
    const oneRequest = { requestsPerMinute: 1, tokensPerMinute: 100 };
    expect(window.waitMs(oneRequest, one(0), 20_000)).toBe(61_000);
  });

  test("resets tokens and requests each when their own newest slot leaves", () => {
    const window = new UsageWindow(0);
    window.charge(one(10));
    window.advance(3);
    window.charge(one(0));
    expect(window.state(limits, 3_000)).toMatchObject({
      resetRequestsMs: 61_000,
      resetTokensMs: 58_000,
    });
  });

  test("has nothing left, and not less, when the limits were lowered below what is counted", () => {
    const window = new UsageWindow(0);
    for (let count = 0; count < 3; count++) window.charge(one(30));
    const lowered = { requestsPerMinute: 1, tokensPerMinute: 50 };
    expect(window.state(lowered, 0)).toMatchObject({ remainingRequests: 0, remainingTokens: 0 });
  });
});

describe("slots of a window", () => {
  test("are those that count, oldest first, in whole milliseconds of age", () => {
    const window = new UsageWindow(100);
    window.charge(one(5));
    window.advance(130);
    window.chargeMore(7);
    window.advance(160);
    window.charge(one(0));
    expect(window.slots(160_400.7)).toEqual([
      { ageMs: 60_400, requests: 1, tokens: 5 },
      { ageMs: 30_400, requests: 0, tokens: 7 },
      { ageMs: 400, requests: 1, tokens: 0 },
    ]);
    window.advance(161);
    expect(window.slots(161_000).map(({ ageMs }) => ageMs)).toEqual([31_000, 1_000]);
  });

  test("are none when nothing counts any more", () => {
    const window = new UsageWindow(0);
    expect(window.slots(0)).toEqual([]);
    window.charge(one(5));
    window.advance(61);
    expect(window.slots(61_000)).toEqual([]);
  });
});

describe("a window that is told how much to count", () => {
  const roomy = { requestsPerMinute: Infinity, tokensPerMinute: 1e9 };

  test("agrees with a plain list of all that was ever charged, whatever it is told", () => {
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
        // What was out of every reach for a while may be remembered, but need not be.
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
              window.charge(one(next.tokens));
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
          const used = 1e9 - window.state(roomy, slot * 1_000).remainingTokens;
          expect(used).toBeGreaterThanOrEqual(tokens);
          expect(used).toBeLessThanOrEqual(tokens + sumOf(forgotten.filter(isCounted)));
        }
      }),
      { numRuns: 500 },
    );
  });

  test("counts again with a longer time what a shorter one left out", () => {
    const window = new UsageWindow(0, 120);
    window.charge(one(10));
    window.advance(100);
    window.count(59);
    expect(window.state(roomy, 100_000).remainingTokens).toBe(1e9);
    expect(window.slots(100_000)).toEqual([]);
    window.count(1_000);
    expect(window.state(roomy, 100_000).remainingTokens).toBe(1e9 - 10);
    expect(window.slots(100_000)).toEqual([{ ageMs: 100_000, requests: 1, tokens: 10 }]);
    window.advance(999);
    expect(window.waitMs({ ...limits, tokensPerMinute: 10 }, one(1), 999_000)).toBe(1_000);
    window.advance(1_000);
    expect(window.state(roomy, 1_000_000).remainingTokens).toBe(1e9);
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
  expect(guaranteeLimits({ requestsPerMinute: Infinity, tokensPerMinute: 101 }, 90)).toEqual({
    requestsPerMinute: Infinity,
    tokensPerMinute: 151,
  });
});

test("a slot is one second, and lives until 61 have begun since", () => {
  expect([0, 999.9, 1_000, 61_500].map(slotAt)).toEqual([0, 0, 1, 61]);
  expect(slotLifeMs(2, 2_500)).toBe(60_500);
});

test("a request is impossible only where even an empty window has no room", () => {
  expect(impossibleDimension(limits, one(100))).toBeUndefined();
  expect(impossibleDimension(limits, one(101))).toBe("tokens");
  expect(impossibleDimension({ ...limits, requestsPerMinute: 0 }, one(1))).toBe("requests");
});
