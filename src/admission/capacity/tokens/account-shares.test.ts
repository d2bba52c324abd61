import { expect, test } from "bun:test";
import fc from "fast-check";
import { AccountShares } from "./account-shares.ts";

const tokensPerMinute = 100_000;
const wish = (accountId: string, tokens: number) => ({ accountId, tokens, tokensPerMinute });

test("one account alone may have four fifths at once, and the rest as time passes", () => {
  const shares = new AccountShares(0);
  shares.charge("a", 80_000, 0);
  expect(shares.waitMs(wish("a", 1_000), 0)).toBe(3_050);
  expect(shares.waitMs(wish("a", 1_000), 3_050)).toBe(0);
  expect(shares.waitMs(wish("a", 10_000), 30_500)).toBe(0);
  expect(shares.waitMs(wish("a", 10_001), 30_500)).toBeGreaterThan(0);
  expect(shares.waitMs(wish("a", 20_000), 60_999)).toBeLessThanOrEqual(1);
  expect(shares.waitMs(wish("a", 80_000), 61_000)).toBe(0);
});

test("an account with less than its share does not wait", () => {
  const shares = new AccountShares(0);
  shares.charge("a", 90_000, 0);
  expect(shares.isLight(wish("b", 33_333), 0)).toBe(true);
  expect(shares.isLight(wish("b", 33_334), 0)).toBe(false);
  expect(shares.waitMs(wish("b", 5_000), 0)).toBe(0);
  shares.charge("b", 33_000, 0);
  expect(shares.isLight(wish("b", 334), 0)).toBe(false);
  expect(shares.isLight(wish("b", 334), 61_000)).toBe(true);
});

test("tokens that were not used do not count", () => {
  const shares = new AccountShares(0);
  const slot = shares.charge("a", 90_000, 0);
  expect(shares.waitMs(wish("a", 10_000), 0)).toBeGreaterThan(0);
  shares.adjust("a", -60_000, slot);
  expect(shares.waitMs(wish("a", 10_000), 0)).toBe(0);
  expect(shares.isLight(wish("a", 20_000), 0)).toBe(true);
});

test("a request for all tokens does not wait when none are used", () => {
  const shares = new AccountShares(0);
  expect(shares.waitMs(wish("a", tokensPerMinute), 0)).toBe(0);
  expect(shares.waitMs(wish("a", tokensPerMinute + 1), 0)).toBe(0);
  expect(shares.waitMs({ accountId: "a", tokens: 1, tokensPerMinute: 0 }, 0)).toBe(0);
});

test("no account waits longer than until used tokens are back, and time alone ends every wait", () => {
  const step = fc.record({
    accountId: fc.constantFrom("a", "b", "c", "d"),
    tokens: fc.nat(60_000),
    pauseMs: fc.nat(20_000),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), step, (steps, last) => {
      const shares = new AccountShares(0);
      let now = 0;
      for (const { accountId, tokens, pauseMs } of steps) {
        now += pauseMs;
        if (shares.waitMs(wish(accountId, tokens), now) === 0) {
          shares.charge(accountId, tokens, now);
        }
      }
      const waitMs = shares.waitMs(wish(last.accountId, last.tokens), now);
      expect(waitMs).toBeGreaterThanOrEqual(0);
      expect(waitMs).toBeLessThanOrEqual(61_000);
      for (let polls = 0; polls < 20_000; polls++) {
        const leftMs = shares.waitMs(wish(last.accountId, last.tokens), now);
        if (leftMs === 0) return;
        now += Math.max(leftMs, 5);
      }
      throw new Error("it waits for ever");
    }),
  );
});
