import { expect, test } from "bun:test";
import { ManualClock } from "../../../../test/support/manual-clock.ts";
import { createMemoryLimitStore } from "./limit-store.ts";
import { minuteScopes } from "../../../domain/limits/limit-scope.ts";

const limits = { requestsPerMinute: 10, tokensPerMinute: 1_000 };
const scopes = minuteScopes("key:a", limits);

function storeAt(monotonicMs: number) {
  const clock = new ManualClock({ monotonicMs });
  const options = { clock, random: () => 0, reservationTtlMs: 60_000, scopeLimit: 10 };
  return { clock, store: createMemoryLimitStore(options) };
}

test("what the previous process admitted counts until its minute is over", () => {
  // The clock of a new process begins near zero, so most restored times lie before it.
  const { clock, store } = storeAt(250);
  store.restore([
    { scopeId: "key:a", ageMs: 50_000, requests: 6, tokens: 600 },
    { scopeId: "key:a", ageMs: 5_000, requests: 3, tokens: 300 },
  ]);
  expect(store.peek(scopes)).toMatchObject({ remainingRequests: 1, remainingTokens: 100 });
  expect(store.acquire({ callId: "1", scopes, tokens: 101 }).isAdmitted).toBe(false);
  expect(store.acquire({ callId: "2", scopes, tokens: 100 }).isAdmitted).toBe(true);
  clock.advance(12_000);
  expect(store.peek(scopes)).toMatchObject({ remainingRequests: 6, remainingTokens: 600 });
  clock.advance(50_000);
  expect(store.peek(scopes)).toMatchObject({ remainingRequests: 10, remainingTokens: 1_000 });
});

test("entries older than a window, or without a valid count, change nothing", () => {
  const { store } = storeAt(90_000);
  store.restore([
    { scopeId: "key:a", ageMs: 62_000, requests: 6, tokens: 600 },
    { scopeId: "key:a", ageMs: 1_000, requests: 1, tokens: Number.NaN },
    { scopeId: "key:b", ageMs: 1_000, requests: 1, tokens: 5 },
  ]);
  expect(store.peek(scopes)).toMatchObject({ remainingRequests: 10, remainingTokens: 1_000 });
});

test("an age before the clock's beginning, or in the future, counts in the slot of its time", () => {
  const { store } = storeAt(100);
  store.restore([{ scopeId: "key:a", ageMs: -5_000, requests: 2, tokens: 20 }]);
  expect(store.peek(scopes).remainingRequests).toBe(8);
});

test("previous use beyond the limit is still a debt, for as long as without the restart", () => {
  const { clock, store } = storeAt(250);
  // 3500 tokens at a limit of 1000: each window pays 1000 of them.
  store.restore([
    { scopeId: "key:a", ageMs: 100_000, requests: 1, tokens: 3_500 },
    { scopeId: "key:b", ageMs: 100_000, requests: 1, tokens: 900 },
  ]);
  expect(store.peek(minuteScopes("key:b", limits)).remainingTokens).toBe(1_000);
  expect(store.peek(scopes).remainingTokens).toBe(0);
  expect(store.acquire({ callId: "1", scopes, tokens: 1 }).isAdmitted).toBe(false);
  clock.advance(83_000);
  expect(store.peek(scopes).remainingTokens).toBe(500);
  clock.advance(61_000);
  expect(store.peek(scopes).remainingTokens).toBe(1_000);
});

test("a previous debt is kept for a key that returns late", () => {
  const { clock, store } = storeAt(250);
  store.restore([{ scopeId: "key:a", ageMs: 1_000, requests: 1, tokens: 10_000 }]);
  clock.advance(9 * 61_000 - 2_000);
  expect(store.peek(scopes).remainingTokens).toBe(0);
  clock.advance(61_000 + 2_000);
  expect(store.peek(scopes).remainingTokens).toBe(1_000);
});
