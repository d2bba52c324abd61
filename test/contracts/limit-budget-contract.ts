import { expect, test } from "bun:test";
import fc from "fast-check";
import {
  type Budget,
  type BudgetScope,
  mostEndUsers,
  otherEndUsers,
  type StoredSpend,
} from "../../src/domain/money/budget.ts";
import type { LimitDecision } from "../../src/store/limits/limit-store.ts";
import { runsOf } from "../support/requirement.ts";
import { type LimitStoreFixture, repeat, scopeOf } from "./limit-store-fixture.ts";

const endsAt = Date.UTC(2026, 11, 1);

export function budgetOf(limitNano: number, values: Partial<Budget> = {}): BudgetScope {
  const budget: Budget = {
    id: "budget",
    accountId: "contract",
    applicationId: undefined,
    keyId: undefined,
    model: undefined,
    period: "month",
    timeZone: "UTC",
    mode: "refuse",
    limitNano,
    setBy: "operator",
    createdAt: 0,
    ...values,
  };
  return { budget, period: { id: "2026-11", startsAt: Date.UTC(2026, 10, 1), endsAt } };
}

/** What every limit store must do about money. */
export function budgetContract(fixture: LimitStoreFixture): void {
  const scope = scopeOf("key", { requestsPerMinute: 100_000, tokensPerMinute: 10_000_000 });
  let calls = 0;
  let epoch = 0;

  async function acquire(
    budgets: readonly BudgetScope[],
    reserveNano: number,
    callId = `call ${(calls += 1)}`,
    tokens = 1,
  ): Promise<LimitDecision> {
    return fixture.store.acquire({ callId, scopes: scope, tokens, budgets, reserveNano });
  }

  async function tell(spend: readonly StoredSpend[] = [], isComplete = true): Promise<void> {
    // A note is no use before a store has looked at what it keeps.
    await fixture.pass(2_000);
    const processes = [fixture.store.process];
    epoch += 1;
    fixture.updateSpend({ epoch, isWhole: true, spend, isComplete, processes, silent: [] });
  }

  const stored = (byProcess: Record<string, number>): StoredSpend => ({
    budgetId: "budget",
    periodId: "2026-11",
    byProcess,
  });

  const admittedOf = (decisions: readonly LimitDecision[]): number =>
    decisions.filter(({ isAdmitted }) => isAdmitted).length;

  test("of 1,000 calls at once exactly those that it is for fit, and as many more as are settled lower", async () => {
    await tell();
    const budget = budgetOf(100 * 70);
    const first = await Promise.all(
      repeat(1_000, (index) => acquire([budget], 70, `first ${index}`)),
    );
    expect(admittedOf(first)).toBe(100);
    for (const [index, { isAdmitted }] of first.entries()) {
      if (isAdmitted) await fixture.store.settle(`first ${index}`, 1, 35);
    }
    expect(admittedOf(await Promise.all(repeat(1_000, () => acquire([budget], 70))))).toBe(50);
  });

  test("a refusal says what was spent and reserved, and that running calls fill it", async () => {
    await tell();
    const budget = budgetOf(100);
    await acquire([budget], 60, "spent");
    await fixture.store.settle("spent", 1, 20);
    await acquire([budget], 70, "running");
    expect(await acquire([budget], 11)).toMatchObject({
      isAdmitted: false,
      dimension: "money",
      scopeId: "budget",
      budgets: [{ spentNano: 20, reservedNano: 70, requestNano: 11 }],
    });
    expect((await acquire([budget], 11)).isAdmitted).toBe(false);
    const waiting = await acquire([budget], 11);
    expect(waiting.isAdmitted || (waiting.retryAfterMs ?? 0) > 0).toBe(true);
    await fixture.store.settle("running", 1, 70);
    expect(await acquire([budget], 11)).toMatchObject({ retryAfterMs: undefined });
    expect((await acquire([budget], 10)).isAdmitted).toBe(true);
  });

  test("all budgets must have room, and a refusal charges neither them nor tokens", async () => {
    await tell();
    const [wide, narrow] = [budgetOf(1_000), budgetOf(50, { id: "narrow" })];
    await acquire([wide, narrow], 40);
    const before = await fixture.left(scope);
    expect(await acquire([wide, narrow], 11)).toMatchObject({ scopeId: "narrow" });
    expect(await fixture.left(scope)).toEqual(before);
    expect(await acquire([wide], 961)).toMatchObject({ budgets: [{ reservedNano: 40 }] });
    expect((await acquire([wide], 960)).isAdmitted).toBe(true);
  });

  test("when tokens refuse, no money is reserved", async () => {
    await tell();
    const budget = budgetOf(100);
    expect(await acquire([budget], 60, "large", 20_000_000)).toMatchObject({ dimension: "tokens" });
    expect((await acquire([budget], 100)).isAdmitted).toBe(true);
  });

  test("a call that costs nothing is never refused, and one that cost more than it reserved counts whole", async () => {
    await tell();
    const budget = budgetOf(100);
    await acquire([budget], 90, "over");
    await fixture.store.settle("over", 1, 150);
    expect(await acquire([budget], 1)).toMatchObject({ budgets: [{ spentNano: 150 }] });
    expect((await acquire([budget], 0)).isAdmitted).toBe(true);
  });

  test("is settled once, and an unknown cost is what was reserved", async () => {
    await tell();
    const budget = budgetOf(100);
    await acquire([budget], 60, "call");
    await fixture.store.settle("call", 1, 10);
    await fixture.store.settle("call", 1, 0);
    await fixture.store.settle("never", 1, 90);
    await acquire([budget], 50, "unknown");
    await fixture.store.settle("unknown", 1);
    expect(await acquire([budget], 41)).toMatchObject({
      budgets: [{ spentNano: 60, reservedNano: 0 }],
    });
    expect((await acquire([budget], 40)).isAdmitted).toBe(true);
  });

  test("counts what others have stored, and never its own stored calls twice", async () => {
    const budget = budgetOf(100);
    await tell([stored({ "": 20, other: 30 })]);
    await acquire([budget], 25, "own");
    await fixture.store.settle("own", 1, 25);
    await tell([stored({ "": 20, other: 30, [fixture.store.process]: 25 })]);
    expect(await acquire([budget], 26)).toMatchObject({ budgets: [{ spentNano: 75 }] });
    expect((await acquire([budget], 25)).isAdmitted).toBe(true);
  });

  test("a lower price of own calls, which no process counts, makes room", async () => {
    await tell();
    const budget = budgetOf(100);
    await acquire([budget], 100, "own");
    await fixture.store.settle("own", 1, 100);
    await tell([stored({ "": -90, [fixture.store.process]: 100 })]);
    expect(await acquire([budget], 91)).toMatchObject({ budgets: [{ spentNano: 10 }] });
    expect((await acquire([budget], 90)).isAdmitted).toBe(true);
  });

  test("each period counts by itself", async () => {
    await tell();
    const november = budgetOf(100);
    const december = {
      ...november,
      period: { id: "2026-12", startsAt: endsAt, endsAt: endsAt + 1 },
    };
    expect((await acquire([november], 100)).isAdmitted).toBe(true);
    expect((await acquire([december], 100)).isAdmitted).toBe(true);
    expect((await acquire([november], 1)).isAdmitted).toBe(false);
  });

  test("a limit that is lowered or raised holds for the next call", async () => {
    await tell();
    await acquire([budgetOf(100)], 60);
    expect((await acquire([budgetOf(50)], 1)).isAdmitted).toBe(false);
    expect((await acquire([budgetOf(61)], 1)).isAdmitted).toBe(true);
  });

  test("the largest budget is counted to the last nano-USD", async () => {
    await tell();
    const budget = budgetOf(9_000_000_000_000_000);
    expect((await acquire([budget], 8_999_999_999_999_998)).isAdmitted).toBe(true);
    expect((await acquire([budget], 3)).isAdmitted).toBe(false);
    expect((await acquire([budget], Number.MAX_SAFE_INTEGER)).isAdmitted).toBe(false);
    expect((await acquire([budget], 2)).isAdmitted).toBe(true);
    expect((await acquire([budget], 1)).isAdmitted).toBe(false);
  });

  test("each end user has the limit to itself, to the last nano-USD", async () => {
    await tell();
    const { budget, period } = budgetOf(100);
    let runs = 0;
    const step = fc.record({
      by: fc.nat(2),
      nano: fc.integer({ min: 1, max: 60 }),
      cost: fc.nat(90),
    });
    const steps = fc.array(fc.record({ step, ends: fc.boolean() }), { maxLength: 25 });
    const property = fc.asyncProperty(steps, async (all) => {
      const id = `run${(runs += 1)}`;
      const used = [0, 0, 0];
      const open: (() => Promise<void>)[] = [];
      for (const { step: each, ends } of all) {
        const of = { budget: { ...budget, id }, period, endUser: `user${each.by}` };
        const callId = `${id} ${(calls += 1)}`;
        const scopes = [fixture.store.placeOf(of)];
        const { isAdmitted } = await acquire(scopes, each.nano, callId);
        expect(isAdmitted).toBe((used[each.by] ?? 0) + each.nano <= 100);
        if (!isAdmitted) continue;
        used[each.by] = (used[each.by] ?? 0) + each.nano;
        open.push(async () => {
          used[each.by] = (used[each.by] ?? 0) + each.cost - each.nano;
          await fixture.store.settle(callId, 1, each.cost);
        });
        if (ends) await open.shift()?.();
      }
    });
    await fc.assert(property, { numRuns: runsOf(30) });
  });

  test("what an end user had spent before is known, and a flood of others takes no place from it", async () => {
    const { budget, period } = budgetOf(100);
    const scopeOfUser = (endUser: string): BudgetScope => ({ budget, period, endUser });
    const spend = repeat(mostEndUsers, (index) => ({
      budgetId: `budget/user${index}`,
      periodId: period.id,
      byProcess: { gone: 60 },
    }));
    await tell(spend);
    const known = fixture.store.placeOf(scopeOfUser("user7"));
    expect(known.endUser).toBe("user7");
    expect(await acquire([known], 41)).toMatchObject({ budgets: [{ spentNano: 60 }] });
    expect((await acquire([known], 40)).isAdmitted).toBe(true);
    const made = repeat(5, (index) => fixture.store.placeOf(scopeOfUser(`made up ${index}`)));
    expect(new Set(made.map(({ endUser }) => endUser))).toEqual(new Set([otherEndUsers]));
    for (const of of made.slice(0, 2)) expect((await acquire([of], 50)).isAdmitted).toBe(true);
    expect((await acquire(made.slice(2, 3), 1)).isAdmitted).toBe(false);
    // Another budget and another period have their own.
    const other = { budget: { ...budget, id: "other" }, period, endUser: "new" };
    const later = { budget, period: { ...period, id: "2026-12" }, endUser: "new" };
    for (const of of [other, later]) expect(fixture.store.placeOf(of)).toEqual(of);
  });

  test("until all is known that was spent, nothing is admitted under a budget", async () => {
    await tell([], false);
    expect(await acquire([budgetOf(100)], 1)).toMatchObject({ isAdmitted: false, budgets: [] });
    expect((await fixture.acquire([scope], 1)).isAdmitted).toBe(true);
  });
}
