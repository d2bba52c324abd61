import { expect, test } from "bun:test";
import fc from "fast-check";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { RetryBudget } from "./retry-budget.ts";

const settings = { retryBudgetPercent: 20, retryFloor: 3 };

function start(values: Partial<typeof settings> = {}) {
  const clock = new ManualClock();
  const current = { ...settings, ...values };
  const budget = new RetryBudget({ clock, settings: () => current });
  const begin = (calls: number, alias = "alpha"): void => {
    for (let call = 0; call < calls; call += 1) budget.began(alias);
  };
  const take = (tries: number, alias = "alpha", key = "k"): number => {
    let taken = 0;
    for (let attempt = 0; attempt < tries; attempt += 1) if (budget.tryTake(alias, key)) taken += 1;
    return taken;
  };
  return { clock, budget, begin, take, current };
}

test("a target always has its floor of retries", () => {
  const { begin, take } = start();
  begin(1);
  expect(take(10)).toBe(3);
});

test("beyond the floor, retries are a share of the other attempts of ten seconds", () => {
  const { clock, begin, take } = start();
  begin(100);
  expect(take(100)).toBe(20);
  clock.advance(5_000);
  begin(50);
  expect(take(100)).toBe(10);
});

test("calls and retries older than ten seconds do not count", () => {
  const { clock, begin, take } = start();
  begin(100);
  take(100);
  clock.advance(11_000);
  expect(take(100)).toBe(3);
});

test("each target has its own budget", () => {
  const { begin, take } = start();
  begin(100, "alpha");
  expect(take(100, "beta")).toBe(3);
  expect(take(100, "alpha")).toBe(20);
});

test("a changed share applies at once", () => {
  const { begin, take, current } = start();
  begin(100);
  expect(take(5)).toBe(5);
  current.retryBudgetPercent = 50;
  expect(take(100)).toBe(45);
});

test("nothing is granted when share and floor are 0", () => {
  const { begin, take } = start({ retryBudgetPercent: 0, retryFloor: 0 });
  begin(1_000);
  expect(take(10)).toBe(0);
});

test("removed targets are forgotten", () => {
  const { budget, begin, take } = start();
  begin(100, "alpha");
  begin(100, "beta");
  budget.retain(new Set(["beta"]));
  expect([take(100, "alpha"), take(100, "beta")]).toEqual([3, 20]);
});

const steps = fc.array(
  fc.record({
    passedMs: fc.oneof(fc.nat(40), fc.nat(2_000), fc.nat(12_000)),
    calls: fc.nat(20),
    tries: fc.nat(12),
  }),
  { maxLength: 80 },
);

test("retries of any ten seconds stay within the share of their calls, or the floor", () => {
  fc.assert(
    fc.property(
      steps,
      fc.nat(100),
      fc.nat(10),
      fc.nat(5_000),
      (taken, retryBudgetPercent, retryFloor, startMs) => {
        const { clock, budget } = start({ retryBudgetPercent, retryFloor });
        clock.advance(startMs / 7);
        const calls: number[] = [];
        const retries: number[] = [];
        const inTenSeconds = (times: number[]): number =>
          times.filter((time) => clock.monotonic() - time < 10_000).length;
        for (const step of taken) {
          clock.advance(step.passedMs);
          for (let call = 0; call < step.calls; call += 1) {
            budget.began("alpha");
            calls.push(clock.monotonic());
          }
          for (let attempt = 0; attempt < step.tries; attempt += 1) {
            if (!budget.tryTake("alpha", `k${attempt % 3}`)) continue;
            retries.push(clock.monotonic());
            const allowed = (inTenSeconds(calls) * retryBudgetPercent) / 100;
            expect(inTenSeconds(retries)).toBeLessThanOrEqual(Math.max(retryFloor, allowed));
          }
        }
      },
    ),
    { numRuns: 300 },
  );
});

test("when everything fails for a minute, there are a fifth more attempts than calls", () => {
  const { clock, begin, take } = start();
  let attempts = 0;
  const calls = 60 * 100;
  for (let call = 0; call < calls; call += 1) {
    clock.advance(10);
    begin(1);
    attempts += 1 + take(3);
  }
  expect(attempts / calls).toBeLessThanOrEqual(1.2);
  expect(attempts / calls).toBeGreaterThan(1.15);
});

test("while several keys ask, one gets at most half", () => {
  const { clock, begin, take } = start();
  begin(100);
  expect(take(30, "alpha", "bad")).toBe(20);
  expect(take(1, "alpha", "good")).toBe(0);
  clock.advance(12_000);
  begin(100);
  take(1, "alpha", "good");
  expect(take(30, "alpha", "bad")).toBe(10);
  expect(take(30, "alpha", "good")).toBe(9);
});
