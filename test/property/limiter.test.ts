import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { Limits } from "../../src/domain/limits/plan.ts";
import { MemoryLimitStore } from "../../src/store/limits/memory/limit-store.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { minuteScopes } from "../../src/domain/limits/limit-scope.ts";
import { runsOf } from "../support/requirement.ts";

const windowMs = 60_000;

interface Admission {
  readonly callId: string;
  readonly atMs: number;
  readonly reserved: number;
  /** The counted tokens: the reservation, then the used ones. */
  tokens: number;
  isSettled: boolean;
}

/** A limiter of one scope with the exact times of all its admissions. */
class Witness {
  readonly clock: ManualClock;
  readonly store: MemoryLimitStore;
  readonly admissions: Admission[] = [];

  constructor(startMs = 0, random: () => number = () => 0) {
    this.clock = new ManualClock({ monotonicMs: startMs });
    this.store = new MemoryLimitStore({
      clock: this.clock,
      random,
    });
  }

  acquire(limits: Limits, tokens: number): boolean {
    const callId = `call ${this.admissions.length}`;
    const request = { callId, scopes: minuteScopes("key", limits), tokens };
    if (!this.store.acquire(request).isAdmitted) return false;
    const atMs = this.clock.monotonic();
    this.admissions.push({ callId, atMs, reserved: tokens, tokens, isSettled: false });
    return true;
  }

  settle(admission: Admission | undefined, tokens: number): void {
    if (admission === undefined || admission.isSettled) return;
    this.store.settle(admission.callId, tokens);
    admission.tokens = tokens;
    admission.isSettled = true;
  }

  /** The sum of the last 60 s, both ends included. */
  recent(): readonly Admission[] {
    const now = this.clock.monotonic();
    return this.admissions.filter(({ atMs }) => atMs >= now - windowMs);
  }

  /** All admissions of any 60 s; the fullest windows begin with an admission. */
  windows(): readonly (readonly Admission[])[] {
    return this.admissions.map((first, index) =>
      this.admissions.slice(index).filter(({ atMs }) => atMs <= first.atMs + windowMs),
    );
  }
}

function sum(amounts: readonly number[]): number {
  return amounts.reduce((total, amount) => total + amount, 0);
}

/** The guaranteed bound of any 60 seconds. */
function expectWithinBound(witness: Witness, limits: Limits): void {
  for (const window of witness.windows()) {
    const overruns = window.map(({ tokens, reserved }) => Math.max(0, tokens - reserved));
    expect(window.length).toBeLessThanOrEqual(limits.requestsPerMinute);
    expect(sum(window.map(({ tokens }) => tokens))).toBeLessThanOrEqual(
      limits.tokensPerMinute + sum(overruns),
    );
  }
}

const pauseMs = fc.oneof(
  { weight: 4, arbitrary: fc.constant(0) },
  { weight: 3, arbitrary: fc.integer({ min: 0, max: 2_000 }) },
  { weight: 2, arbitrary: fc.integer({ min: 2_000, max: 30_000 }) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(58_000, 59_000, 59_001, 59_999, 60_000, 60_001, 60_999, 61_000),
  },
);
const history = fc.record({
  startMs: fc.integer({ min: 0, max: 1_000_000 }),
  limits: fc.record({
    requestsPerMinute: fc.integer({ min: 1, max: 8 }),
    tokensPerMinute: fc.integer({ min: 20, max: 100 }),
  }),
  steps: fc.array(
    fc.record({
      pauseMs,
      attempts: fc.integer({ min: 0, max: 4 }),
      tokens: fc.integer({ min: 0, max: 40 }),
      /** The earlier admission that ends now, if any, and the error of its estimate. */
      settle: fc.option(fc.nat(100)),
      usedShare: fc.constantFrom(0, 0.1, 0.5, 0.9, 1, 1.5, 3),
    }),
    { minLength: 5, maxLength: 80 },
  ),
});

describe("the ceiling of any 60 seconds", () => {
  test("holds in every history, while calls run and after their settlement", () => {
    fc.assert(
      fc.property(history, ({ startMs, limits, steps }) => {
        const witness = new Witness(startMs);
        for (const step of steps) {
          witness.clock.advance(step.pauseMs);
          const { admissions } = witness;
          if (step.settle !== null && admissions.length > 0) {
            const ending = admissions[step.settle % admissions.length];
            witness.settle(ending, Math.round((ending?.reserved ?? 0) * step.usedShare));
          }
          for (let attempt = 0; attempt < step.attempts; attempt++) {
            if (!witness.acquire(limits, step.tokens)) continue;
            // Open reservations and known overruns count in full at every admission.
            const tokens = sum(witness.recent().map((admission) => admission.tokens));
            expect(tokens).toBeLessThanOrEqual(limits.tokensPerMinute);
          }
        }
        expectWithinBound(witness, limits);
      }),
      { numRuns: runsOf(5_000) },
    );
  }, 180_000);

  test("holds exactly when no estimate is ever too low", () => {
    fc.assert(
      fc.property(history, ({ startMs, limits, steps }) => {
        const witness = new Witness(startMs);
        for (const step of steps) {
          witness.clock.advance(step.pauseMs);
          for (let attempt = 0; attempt < step.attempts; attempt++) {
            witness.acquire(limits, step.tokens);
          }
          const ending = witness.admissions[step.settle ?? 0];
          witness.settle(ending, Math.floor((ending?.reserved ?? 0) * Math.min(1, step.usedShare)));
        }
        for (const window of witness.windows()) {
          const tokens = sum(window.map((admission) => admission.tokens));
          expect(tokens).toBeLessThanOrEqual(limits.tokensPerMinute);
        }
      }),
      { numRuns: runsOf(1_000) },
    );
  }, 180_000);

  test("follows limits that change while calls run, from the next admission on", () => {
    const changing = fc.array(
      fc.record({
        pauseMs,
        tokensPerMinute: fc.integer({ min: 10, max: 100 }),
        tokens: fc.nat(40),
      }),
      { minLength: 10, maxLength: 60 },
    );
    fc.assert(
      fc.property(changing, (steps) => {
        const witness = new Witness();
        for (const { pauseMs: ms, tokensPerMinute, tokens } of steps) {
          witness.clock.advance(ms);
          if (!witness.acquire({ requestsPerMinute: 1_000, tokensPerMinute }, tokens)) continue;
          const recent = sum(witness.recent().map((admission) => admission.tokens));
          expect(recent).toBeLessThanOrEqual(tokensPerMinute);
        }
      }),
      { numRuns: runsOf(1_000) },
    );
  }, 180_000);
});

describe("a caller that obeys Retry-After", () => {
  test("is admitted when it returns, with any jitter", () => {
    fc.assert(
      fc.property(history, fc.double({ min: 0, max: 1, noNaN: true }), (drawn, jitter) => {
        const { startMs, limits, steps } = drawn;
        const witness = new Witness(startMs, () => jitter);
        for (const step of steps) {
          witness.clock.advance(step.pauseMs);
          for (let attempt = 0; attempt < step.attempts; attempt++) {
            witness.acquire(limits, step.tokens);
          }
        }
        const scopes = minuteScopes("key", limits);
        const request = { callId: "lone", scopes, tokens: Math.min(20, limits.tokensPerMinute) };
        const decision = witness.store.acquire(request);
        if (decision.isAdmitted) return;
        expect(decision.retryAfterMs).toBeLessThanOrEqual(Math.ceil(61_000 * 1.1));
        witness.clock.advance(decision.retryAfterMs ?? 0);
        expect(witness.store.acquire(request).isAdmitted).toBe(true);
      }),
      { numRuns: runsOf(1_000) },
    );
  }, 180_000);
});

describe("a scope", () => {
  test("is shared by two secrets of one key", () => {
    fc.assert(
      fc.property(fc.array(fc.boolean(), { minLength: 1, maxLength: 100 }), (secrets) => {
        const { store } = new Witness();
        const limits = { requestsPerMinute: 30, tokensPerMinute: 200 };
        const admitted = secrets.filter((isFirstSecret, index) => {
          const scopes = minuteScopes(["key", "7"].join("-"), { ...limits });
          const callId = `${isFirstSecret ? "first" : "second"} ${index}`;
          return store.acquire({ callId, scopes, tokens: 10 }).isAdmitted;
        });
        expect(admitted).toHaveLength(Math.min(20, secrets.length));
      }),
      { numRuns: runsOf(200) },
    );
  });
});

describe("worst cases known from other gateways", () => {
  test("a hundred concurrent reservations that use half each stay within the limit", () => {
    const limits = { requestsPerMinute: 1_000, tokensPerMinute: 10_000 };
    const witness = new Witness();
    for (let index = 0; index < 100; index++) witness.acquire(limits, 1_000);
    expect(witness.admissions).toHaveLength(10);
    for (const admission of witness.admissions) witness.settle(admission, 500);
    // Exactly the returned tokens can be used.
    for (let index = 0; index < 100; index++) witness.acquire(limits, 1_000);
    expect(witness.admissions).toHaveLength(15);
    expectWithinBound(witness, limits);
  });

  test("59 long streams that end together allow no burst", () => {
    const limits = { requestsPerMinute: 1_000, tokensPerMinute: 12_000 };
    const witness = new Witness();
    for (let index = 0; index < 59; index++) {
      witness.clock.advance(5_100);
      expect(witness.acquire(limits, 1_000)).toBe(true);
    }
    for (const stream of witness.admissions) witness.settle(stream, 10);
    for (let elapsedMs = 0; elapsedMs <= 60_000; elapsedMs += 100) {
      for (let attempt = 0; attempt < 20; attempt++) witness.acquire(limits, 1_000);
      witness.clock.advance(100);
    }
    const late = witness.admissions.slice(59);
    expect(sum(late.map(({ tokens }) => tokens))).toBe(11_000);
    expectWithinBound(witness, limits);
  });

  test.each([
    [1, "one token a minute"],
    [17, "a small plan"],
    [2_000, "a plan of two thousand"],
  ])("a first request that asks for all %d tokens is admitted: %s", (tokensPerMinute) => {
    const witness = new Witness();
    expect(witness.acquire({ requestsPerMinute: 1, tokensPerMinute }, tokensPerMinute)).toBe(true);
  });
});

describe("the sustained rate", () => {
  const limits = { requestsPerMinute: 60, tokensPerMinute: 1_000_000 };

  test("of a client that always takes everything is 60/61 of its limit", () => {
    const witness = new Witness();
    // 3660 s contain 60 bursts, one every 61 s.
    for (let elapsedMs = 0; elapsedMs < 61 * windowMs; elapsedMs += 500) {
      while (witness.acquire(limits, 1));
      witness.clock.advance(500);
    }
    expect(witness.admissions).toHaveLength(60 * limits.requestsPerMinute);
  });

  test("of a client that paces itself at its limit is 60/61 too: one request of 61 waits", () => {
    const witness = new Witness();
    let refusedCount = 0;
    for (let second = 0; second < 61 * 60; second++) {
      if (!witness.acquire(limits, 1)) refusedCount += 1;
      witness.clock.advance(1_000);
    }
    expect(refusedCount).toBe(60);
  });
});
