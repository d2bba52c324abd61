import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { guaranteeLimit } from "../../src/domain/limits/slots.ts";
import { MemoryLimitStore } from "../../src/store/limits/memory/limit-store.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { runsOf } from "../support/requirement.ts";
import { report } from "../support/scorecard.ts";
import { guaranteeSeconds } from "../../src/admission/capacity/guarantee.ts";

/** A key that uses its guarantee in calls in sequence. */
class Owner {
  readonly clock: ManualClock;
  readonly store: MemoryLimitStore;
  readonly calls: { readonly id: string; readonly atMs: number; tokens: number }[] = [];
  refused = 0;

  constructor(startMs: number) {
    this.clock = new ManualClock({ monotonicMs: startMs });
    this.store = new MemoryLimitStore({
      clock: this.clock,
      random: () => 0,
    });
  }

  /** The largest request determines the window of the guarantee. */
  ask(tokens: number, tokensPerMinute: number, largest = tokensPerMinute): boolean {
    const id = `call ${this.calls.length + this.refused}`;
    const seconds = guaranteeSeconds(tokensPerMinute, largest);
    const limit = guaranteeLimit(tokensPerMinute, seconds);
    const scopes = [{ id: "guarantee:key", unit: "tokens", window: { seconds }, limit }] as const;
    const { isAdmitted } = this.store.acquire({ callId: id, scopes, tokens });
    if (isAdmitted) this.calls.push({ id, atMs: this.clock.monotonic(), tokens });
    else this.refused += 1;
    return isAdmitted;
  }

  /** The tokens requested in the last 60 s, exclusive of that moment. */
  recentTokens(): number {
    const since = this.clock.monotonic() - 60_000;
    let tokens = 0;
    for (let index = this.calls.length - 1; index >= 0; index--) {
      const call = this.calls[index];
      if (call === undefined || call.atMs <= since) break;
      tokens += call.tokens;
    }
    return tokens;
  }

  settleLast(usedShare: number): void {
    const call = this.calls.at(-1);
    if (call === undefined) return;
    call.tokens = Math.floor(call.tokens * usedShare);
    this.store.settle(call.id, call.tokens);
  }
}

const startMs = fc.oneof(fc.constantFrom(0, 999, 999.75, 1_000), fc.nat(10_000_000));
const pauseMs = fc.oneof(
  { weight: 4, arbitrary: fc.integer({ min: 0, max: 3_000 }) },
  { weight: 2, arbitrary: fc.constantFrom(0, 999, 1_000, 59_000, 59_999, 60_000, 60_001) },
  { weight: 1, arbitrary: fc.integer({ min: 3_000, max: 900_000 }) },
);
const largestRequest = fc.constantFrom(1, 50, 100, 101, 250, 1_000, 2_000, 100_000);

describe("a key within its guarantee is never refused", () => {
  test("if it uses exactly all of it in every 60 seconds", () => {
    let asked = 0;
    let refused = 0;
    fc.assert(
      fc.property(
        startMs,
        fc.uniqueArray(fc.integer({ min: 0, max: 59_999 }), { minLength: 1, maxLength: 12 }),
        largestRequest,
        (start, moments, largest) => {
          const owner = new Owner(start);
          const inOrder = moments.toSorted((one, other) => one - other);
          for (let minute = 0; minute < 70; minute++) {
            for (const moment of inOrder) {
              owner.clock.advance(start + minute * 60_000 + moment - owner.clock.monotonic());
              owner.ask(100, 100 * inOrder.length, largest);
            }
          }
          asked += 70 * inOrder.length;
          refused += owner.refused;
          expect(owner.refused).toBe(0);
        },
      ),
      { numRuns: 300 },
    );
    report({
      check: "P1",
      name: "provisioned calls refused of a client that packs its guarantee into every 60 s",
      value: `${refused} of ${asked}`,
      limit: "0 of >= 100,000",
      isMet: refused === 0 && asked >= 100_000,
    });
    expect(asked).toBeGreaterThanOrEqual(100_000);
  }, 180_000);

  test("for any distribution of its calls, any use of reservations and any model", () => {
    const step = fc.record({
      pauseMs,
      tokens: fc.integer({ min: 0, max: 100 }),
      largest: largestRequest,
      usedShare: fc.constantFrom(undefined, 0, 0.5, 1),
      jumpMs: fc.constantFrom(undefined, -3_600_000, 3_600_000),
    });
    fc.assert(
      fc.property(startMs, fc.array(step, { maxLength: 120 }), (start, steps) => {
        const owner = new Owner(start);
        for (const { pauseMs: ms, tokens, largest, usedShare, jumpMs } of steps) {
          owner.clock.advance(ms);
          if (jumpMs !== undefined) owner.clock.jumpWall(jumpMs);
          const room = 100 - owner.recentTokens();
          expect(owner.ask(Math.min(tokens, room), 100, largest)).toBe(true);
          if (usedShare !== undefined) owner.settleLast(usedShare);
        }
      }),
      { numRuns: 2_000 },
    );
  }, 180_000);

  test("if it sends the model's largest request as often as its units allow", () => {
    fc.assert(
      fc.property(startMs, fc.integer({ min: 1, max: 40 }), fc.nat(99), (start, minutes, less) => {
        const largest = minutes * 100 - less;
        const owner = new Owner(start);
        for (let count = 0; count < 50; count++) {
          expect(owner.ask(largest, 100, largest)).toBe(true);
          owner.clock.advance(minutes * 60_000);
        }
      }),
    );
  });

  test("while units are bought and returned, if it keeps to the fewest", () => {
    const step = fc.record({
      pauseMs,
      tokens: fc.integer({ min: 0, max: 100 }),
      tokensPerMinute: fc.constantFrom(100, 101, 150, 200, 1_000, 100_000),
    });
    fc.assert(
      fc.property(
        startMs,
        largestRequest,
        fc.array(step, { maxLength: 120 }),
        (start, largest, steps) => {
          const owner = new Owner(start);
          for (const { pauseMs: ms, tokens, tokensPerMinute } of steps) {
            owner.clock.advance(ms);
            const room = 100 - owner.recentTokens();
            expect(owner.ask(Math.min(tokens, room), tokensPerMinute, largest)).toBe(true);
          }
        },
      ),
      { numRuns: 2_000 },
    );
  }, 180_000);
});

describe("in the long run a guarantee admits at most 60/59 of itself", () => {
  const greedy = fc.array(
    fc.record({ pauseMs, tokens: fc.integer({ min: 1, max: 400 }), attempts: fc.nat(4) }),
    { minLength: 20, maxLength: 200 },
  );

  test("for a key that always takes everything, with any model", () => {
    fc.assert(
      fc.property(
        startMs,
        greedy,
        fc.array(largestRequest, { minLength: 1 }),
        (start, steps, ls) => {
          const owner = new Owner(start);
          // From its first call on its window suits the longest of them.
          const longest = Math.max(...ls);
          owner.ask(0, 100, longest);
          for (const [index, { pauseMs: ms, tokens, attempts }] of steps.entries()) {
            owner.clock.advance(ms);
            for (let attempt = 0; attempt <= attempts; attempt++) {
              owner.ask(tokens, 100, ls[index % ls.length]);
            }
          }
          const seconds =
            Math.floor(owner.clock.monotonic() / 1_000) - Math.floor(start / 1_000) + 1;
          const burst = guaranteeLimit(100, guaranteeSeconds(100, longest));
          const admitted = owner.calls.reduce((sum, call) => sum + call.tokens, 0);
          expect(admitted).toBeLessThanOrEqual((100 / 59) * seconds + burst);
        },
      ),
      { numRuns: runsOf(2_000) },
    );
  }, 180_000);

  test("and about that much for a key that asks all the time", () => {
    const owner = new Owner(500);
    // 59 minutes contain 60 bursts of 59 counted seconds.
    for (let second = 0; second < 59 * 60; second++) {
      while (owner.ask(10, 100));
      owner.clock.advance(1_000);
    }
    const admitted = owner.calls.reduce((sum, call) => sum + call.tokens, 0);
    expect(admitted).toBe(60 * 100);
    report({
      check: "P2",
      name: "provisioned tokens of a greedy client in the long run, of its guarantee",
      value: (admitted / (59 * 100)).toFixed(4),
      limit: "<= 1.0170 (60/59)",
      isMet: admitted <= (59 * 100 * 60) / 59,
    });
  });
});
