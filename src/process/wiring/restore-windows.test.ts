import { expect, test } from "bun:test";
import { ManualClock } from "../../../test/support/manual-clock.ts";
import { restoreWindows } from "./restore-windows.ts";
import { createMemoryLimitStore } from "../../store/coordinator/memory/limit-store.ts";
import { minuteScopes } from "../../domain/limits/limit-scope.ts";
import type { AdmittedUsage } from "../../store/usage-reports.ts";

const limits = { requestsPerMinute: 10, tokensPerMinute: 100 };
const plan = minuteScopes("key:a", limits);

async function restored(admitted: (now: number) => readonly AdmittedUsage[]) {
  // The monotonic clock of a new process starts near zero, so most restored times lie before it.
  const clock = new ManualClock({ monotonicMs: 500 });
  const options = { clock, random: () => 0, reservationTtlMs: 60_000, scopeLimit: 10 };
  const store = createMemoryLimitStore(options);
  const reports = { admitted: () => Promise.resolve(admitted(clock.now())) };
  const plans = new Map([["plan", { overrunFactor: 3 }]]);
  await restoreWindows({ reports, limits: store, clock, plans });
  const left = (seconds: number): number =>
    store.peek([
      { id: "guarantee:a", unit: "tokens", window: { seconds }, limit: (100 * seconds) / 60 },
    ]).remainingTokens;
  return { clock, store, left };
}

test("guarantees are restored for an hour, independently of plans", async () => {
  const usage = { limitScope: "a", accountId: "acct_a", isGuarantee: true, requests: 1 };
  const { clock, store, left } = await restored((now) => [
    { ...usage, at: now - 3_500_000, tokens: 1_000 },
    { ...usage, at: now - 1_500_000, tokens: 200 },
    { ...usage, at: now - 30_000, tokens: 30 },
    { ...usage, isGuarantee: false, at: now - 30_000, tokens: 7 },
  ]);
  expect(left(60)).toBe(70);
  expect(left(1_800)).toBe(3_000 - 230);
  expect(left(3_600)).toBe(6_000 - 1_230);
  expect(store.peek(plan)).toMatchObject({ remainingRequests: 9, remainingTokens: 93 });
  expect(store.reservationCount).toBe(0);
  clock.advance(30_000);
  expect(left(60)).toBe(100);
  expect(left(1_800)).toBe(3_000 - 230);
});

test("a customer that returns after its window is not refused because of the restart", async () => {
  const { store, left } = await restored((now) => [
    {
      limitScope: "a",
      accountId: "acct_a",
      isGuarantee: true,
      at: now - 60_000,
      requests: 1,
      tokens: 100,
    },
  ]);
  expect(left(60)).toBe(100);
  expect(store.peek(plan).remainingTokens).toBe(100);
});

test("keys of an account count together under the account limit", async () => {
  const usage = { accountId: "acct_a", isGuarantee: false, requests: 2, tokens: 20 };
  const { store } = await restored((now) => [
    { ...usage, limitScope: "a", at: now - 10_000 },
    { ...usage, limitScope: "b", at: now - 5_000 },
  ]);
  const account = minuteScopes("account:acct_a", limits);
  expect(store.peek(account)).toMatchObject({ remainingRequests: 6, remainingTokens: 60 });
});
