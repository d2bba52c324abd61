import { describe, expect, test } from "bun:test";
import { ManualClock } from "../../../../test/support/manual-clock.ts";
import { limitStoreContract } from "../../../../test/contracts/limit-store-contract.ts";
import { MemoryLimitStore } from "./limit-store.ts";
import { minuteScopes } from "../../../domain/limits/limit-scope.ts";

const limits = { requestsPerMinute: 10, tokensPerMinute: 1_000 };

for (const random of [0, 0.5, 1]) {
  limitStoreContract(
    `memory, jitter drawn as ${random}`,
    (clock) =>
      new MemoryLimitStore({
        clock,
        random: () => random,
      }),
  );
}

describe("memory limit store", () => {
  test("answers without a promise", () => {
    const { store } = setUp();
    const decision = store.acquire({ callId: "a", scopes: minuteScopes("key", limits), tokens: 1 });
    expect(decision.isAdmitted).toBe(true);
    expect(store.settle("a", 1)).toBeUndefined();
  });

  test("peeking returns what is left and charges nothing", () => {
    const { store } = setUp();
    const scopes = minuteScopes("key", limits);
    expect(store.peek(scopes)).toEqual({
      limitRequests: 10,
      limitTokens: 1_000,
      remainingRequests: 10,
      remainingTokens: 1_000,
      resetRequestsMs: 0,
      resetTokensMs: 0,
    });
    store.acquire({ callId: "a", scopes, tokens: 400 });
    expect(store.peek(scopes)).toEqual(store.peek(scopes));
    expect(store.peek(scopes)).toMatchObject({ remainingRequests: 9, remainingTokens: 600 });
  });

  test.each([-1, 0.5, NaN, Infinity])("throws for a reservation of %p tokens", (tokens) => {
    const { store } = setUp();
    const request = { callId: "a", scopes: minuteScopes("key", limits), tokens };
    expect(() => store.acquire(request)).toThrow(RangeError);
  });

  test("throws for a request without scopes", () => {
    const { store } = setUp();
    expect(() => store.acquire({ callId: "a", scopes: [], tokens: 1 })).toThrow(RangeError);
  });

  test("adds up to a tenth of jitter to the wait, rounded up", () => {
    const waitsMs = [0, 0.5, 1].map((random) => {
      const { store, clock } = setUp({ random });
      const scopes = minuteScopes("key", { ...limits, requestsPerMinute: 1 });
      clock.advance(0.25);
      store.acquire({ callId: "a", scopes, tokens: 1 });
      clock.advance(21_000);
      const decision = store.acquire({ callId: "b", scopes, tokens: 1 });
      return decision.isAdmitted ? undefined : decision.retryAfterMs;
    });
    expect(waitsMs).toEqual([40_000, 42_000, 44_000]);
  });

  test.each([
    [1_000, 60_000],
    [2_500, 60_000],
    [500, 60_500],
  ])("jitter lengthens no wait beyond what clients honour: %d ms later", (laterMs, waitMs) => {
    const { store, clock } = setUp({ random: 1 });
    const scopes = minuteScopes("key", { ...limits, requestsPerMinute: 1 });
    store.acquire({ callId: "a", scopes, tokens: 1 });
    clock.advance(laterMs);
    const decision = store.acquire({ callId: "b", scopes, tokens: 1 });
    expect(decision).toMatchObject({ retryAfterMs: waitMs });
  });

  test("drops idle scopes as later calls arrive", () => {
    const { store, clock } = setUp();
    for (let round = 0; round < 720; round++) {
      for (let index = 0; index < 10; index++) {
        const callId = `call ${round} ${index}`;
        const scopes = minuteScopes(`key ${round} ${index}`, limits);
        expect(store.acquire({ callId, scopes, tokens: 1 }).isAdmitted).toBe(true);
      }
      clock.advance(5_000);
    }
    // Two generations at most of 61 s, which is 13 rounds of ten calls with two scopes each.
    expect(store.scopeCount).toBeLessThanOrEqual(2 * 13 * 10 * 2);
  });

  test("a scope in use is never dropped", () => {
    const { store, clock } = setUp();
    const scopes = minuteScopes("key", limits);
    for (let index = 0; index < 300; index++) {
      store.acquire({ callId: `call ${index}`, scopes, tokens: 10 });
      expect(store.peek(scopes).remainingRequests).toBe(Math.max(3, 9 - index));
      clock.advance(10_000);
    }
  });

  test("counts the debt of a call that outlived its scope", () => {
    const { store, clock } = setUp();
    store.acquire({ callId: "long", scopes: minuteScopes("one", limits), tokens: 10 });
    clock.advance(200_000);
    store.acquire({ callId: "a", scopes: minuteScopes("two", limits), tokens: 1 });
    store.settle("long", 110);
    expect(store.peek(minuteScopes("one", limits)).remainingTokens).toBe(900);
  });
});

function setUp(options: { random?: number } = {}) {
  const clock = new ManualClock();
  const store = new MemoryLimitStore({
    clock,
    random: () => options.random ?? 0,
  });
  return { clock, store };
}
