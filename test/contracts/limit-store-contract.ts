import { beforeEach, describe, expect, test } from "bun:test";
import { budgetContract } from "./limit-budget-contract.ts";
import { countingContract } from "./limit-counting-contract.ts";
import { guaranteeContract } from "./limit-guarantee-contract.ts";
import { debtContract } from "./limit-debt-contract.ts";
import { lateSettlementContract, settlementContract } from "./limit-settlement-contract.ts";
import {
  LimitStoreFixture,
  repeat,
  repeatInOrder,
  scopeOf,
  waitOf,
  type CreateLimitStore,
} from "./limit-store-fixture.ts";

/** What every limit store must do, whatever keeps its counters. */
export function limitStoreContract(name: string, create: CreateLimitStore): void {
  describe(`limit store contract: ${name}`, () => {
    const fixture = new LimitStoreFixture(create);
    beforeEach(() => fixture.reset());
    describe("admission", () => admissionContract(fixture));
    describe("counting", () => countingContract(fixture));
    describe("several scopes", () => scopesContract(fixture));
    describe("refusal", () => refusalContract(fixture));
    describe("settlement", () => settlementContract(fixture));
    describe("debt", () => debtContract(fixture));
    describe("late settlement", () => lateSettlementContract(fixture));
    describe("a guarantee", () => guaranteeContract(fixture));
    describe("money", () => budgetContract(fixture));
    describe("known attacks", () => attackContract(fixture));
  });
}

function admissionContract(fixture: LimitStoreFixture): void {
  test("of many requests at once, exactly the limit is admitted", async () => {
    const scope = scopeOf("key", { requestsPerMinute: 40 });
    const decisions = await Promise.all(repeat(100, () => fixture.acquire([scope], 1)));
    expect(decisions.filter(({ isAdmitted }) => isAdmitted)).toHaveLength(40);
  });

  test("an admission says what is left and when all of the window is free again", async () => {
    fixture.clock.advance(250);
    const scope = scopeOf("key", { requestsPerMinute: 5, tokensPerMinute: 100 });
    await fixture.acquire([scope], 30);
    fixture.clock.advance(2_000);
    const { state } = await fixture.acquire([scope], 20);
    expect(state).toEqual({
      limitRequests: 5,
      limitTokens: 100,
      remainingRequests: 3,
      remainingTokens: 50,
      resetRequestsMs: 60_750,
      resetTokensMs: 60_750,
    });
  });

  test("a request without tokens is counted as a request only", async () => {
    const scope = scopeOf("key", { requestsPerMinute: 1, tokensPerMinute: 10 });
    const { state } = await fixture.acquire([scope], 0);
    expect(state).toMatchObject({ remainingRequests: 0, remainingTokens: 10, resetTokensMs: 0 });
    expect(await fixture.acquire([scope], 0)).toMatchObject({ dimension: "requests" });
  });

  test("a slot is counted for 61 seconds from its beginning, and then no more", async () => {
    fixture.clock.advance(999);
    const scope = scopeOf("key", { requestsPerMinute: 1 });
    await fixture.acquire([scope], 1);
    fixture.clock.advance(60_000);
    expect(await fixture.acquire([scope], 1)).toMatchObject({ isAdmitted: false });
    fixture.clock.advance(1);
    expect(await fixture.acquire([scope], 1)).toMatchObject({ isAdmitted: true });
  });

  test("a limit that is lowered or raised holds for the next request", async () => {
    await repeatInOrder(6, () => fixture.acquire([scopeOf("key", { requestsPerMinute: 10 })], 1));
    const lowered = scopeOf("key", { requestsPerMinute: 5 });
    expect(await fixture.acquire([lowered], 1)).toMatchObject({
      isAdmitted: false,
      state: { remainingRequests: 0 },
    });
    const raised = scopeOf("key", { requestsPerMinute: 7 });
    expect(await fixture.acquire([raised], 1)).toMatchObject({ isAdmitted: true });
    expect(await fixture.acquire([raised], 1)).toMatchObject({ isAdmitted: false });
  });

  test("jumps of the wall clock change nothing", async () => {
    const scope = scopeOf("key", { requestsPerMinute: 2 });
    await fixture.acquire([scope], 1);
    fixture.clock.jumpWall(3_600_000);
    expect(await fixture.acquire([scope], 1)).toMatchObject({ isAdmitted: true });
    fixture.clock.jumpWall(-7_200_000);
    expect(await fixture.acquire([scope], 1)).toMatchObject({ isAdmitted: false });
  });
}

function scopesContract(fixture: LimitStoreFixture): void {
  test("when one scope refuses, none is charged", async () => {
    const roomy = scopeOf("roomy", { requestsPerMinute: 10, tokensPerMinute: 1_000 });
    const small = scopeOf("small", { requestsPerMinute: 10, tokensPerMinute: 100 });
    await fixture.acquire([small], 60);
    const decision = await fixture.acquire([roomy, small], 60);
    expect(decision).toMatchObject({ isAdmitted: false, scopeId: "small", dimension: "tokens" });
    expect(await fixture.left(roomy)).toMatchObject({
      remainingRequests: 10,
      remainingTokens: 1_000,
    });
    expect(await fixture.left(small)).toMatchObject({ remainingRequests: 9, remainingTokens: 40 });
  });

  test("an admission and its settlement reach all scopes, and the first one is reported", async () => {
    const key = scopeOf("key", { tokensPerMinute: 1_000 });
    const account = scopeOf("account", { tokensPerMinute: 5_000 });
    const decision = await fixture.acquireAs("call", [key, account], 400);
    expect(decision.state.remainingTokens).toBe(600);
    await fixture.store.settle("call", 100);
    expect((await fixture.left(key)).remainingTokens).toBe(900);
    expect((await fixture.left(account)).remainingTokens).toBe(4_900);
  });

  test("the wait is that of all scopes together", async () => {
    const early = scopeOf("early", { requestsPerMinute: 1 });
    const late = scopeOf("late", { requestsPerMinute: 1 });
    await fixture.acquire([early], 1);
    fixture.clock.advance(20_000);
    await fixture.acquire([late], 1);
    const decision = await fixture.acquire([early, late], 1);
    expect(decision).toMatchObject({ isAdmitted: false, scopeId: "early" });
    fixture.clock.advance(waitOf(decision));
    expect(await fixture.acquire([early, late], 1)).toMatchObject({ isAdmitted: true });
  });

  test("scopes with different ids do not touch each other", async () => {
    await fixture.acquire([scopeOf("one", { requestsPerMinute: 1 })], 1);
    const other = await fixture.acquire([scopeOf("two", { requestsPerMinute: 1 })], 1);
    expect(other).toMatchObject({ isAdmitted: true });
  });
}

function refusalContract(fixture: LimitStoreFixture): void {
  test("a refusal changes no counter, however often it happens", async () => {
    const scope = scopeOf("key", { requestsPerMinute: 3, tokensPerMinute: 100 });
    await fixture.acquire([scope], 80);
    const before = await fixture.left(scope);
    await repeatInOrder(10, () => fixture.acquire([scope], 50));
    expect(await fixture.left(scope)).toEqual(before);
    expect(await fixture.acquire([scope], 20)).toMatchObject({ isAdmitted: true });
  });

  test("a request larger than the limit itself is told so, and not to come back", async () => {
    const scope = scopeOf("key", { tokensPerMinute: 100 });
    const decision = await fixture.acquire([scope], 101);
    expect(decision).toMatchObject({ isAdmitted: false, dimension: "tokens", scopeId: "key" });
    expect(decision).toHaveProperty("retryAfterMs", undefined);
    expect(await fixture.acquire([scope], 100)).toMatchObject({ isAdmitted: true });
  });

  test("a limit of no requests is never waited for", async () => {
    const decision = await fixture.acquire([scopeOf("key", { requestsPerMinute: 0 })], 1);
    expect(decision).toMatchObject({ isAdmitted: false, dimension: "requests" });
    expect(decision).toHaveProperty("retryAfterMs", undefined);
  });

  test("a scope that can never take the request is named before one that is only busy", async () => {
    const busy = scopeOf("busy", { requestsPerMinute: 1 });
    const tiny = scopeOf("tiny", { tokensPerMinute: 10 });
    await fixture.acquire([busy], 1);
    const decision = await fixture.acquire([busy, tiny], 11);
    expect(decision).toMatchObject({ scopeId: "tiny", dimension: "tokens" });
    expect(decision).toHaveProperty("retryAfterMs", undefined);
  });

  test("the wait lasts until just enough of the oldest slots have left", async () => {
    const scope = scopeOf("key", { tokensPerMinute: 100 });
    for (const tokens of [30, 30, 40]) {
      await fixture.acquire([scope], tokens);
      fixture.clock.advance(10_000);
    }
    const waitMs = waitOf(await fixture.acquire([scope], 50));
    // Two slots must leave. The second began at 10 s, it is 30 s now, so 41 s remain.
    expect(waitMs).toBeGreaterThanOrEqual(41_000);
    expect(waitMs).toBeLessThanOrEqual(Math.ceil(41_000 * 1.1));
    fixture.clock.advance(40_999);
    expect(await fixture.acquire([scope], 50)).toMatchObject({ isAdmitted: false });
    fixture.clock.advance(waitMs - 40_999);
    expect(await fixture.acquire([scope], 50)).toMatchObject({ isAdmitted: true });
  });
}

function attackContract(fixture: LimitStoreFixture): void {
  test("a hundred reservations at once never exceed the limit, settled or not", async () => {
    const scope = scopeOf("key", { tokensPerMinute: 10_000 });
    const calls = await Promise.all(
      repeat(100, async (index) => {
        const id = `call ${index}`;
        const { isAdmitted } = await fixture.acquireAs(id, [scope], 1_000);
        return { id, isAdmitted };
      }),
    );
    const admitted = calls.filter(({ isAdmitted }) => isAdmitted);
    expect(admitted).toHaveLength(10);
    for (const { id } of admitted) await fixture.store.settle(id, 500);
    expect((await fixture.left(scope)).remainingTokens).toBe(5_000);
  });

  test("long streams that end together give no burst to those who come after", async () => {
    const scope = scopeOf("key", { requestsPerMinute: 1_000, tokensPerMinute: 10_000 });
    const streams: string[] = [];
    // One stream of 1000 tokens every 5 s for five minutes, of which those that fit are admitted.
    for (let index = 0; index < 60; index++) {
      const id = `stream ${index}`;
      if ((await fixture.acquireAs(id, [scope], 1_000)).isAdmitted) streams.push(id);
      fixture.clock.advance(5_000);
    }
    expect(streams.length).toBeGreaterThan(40);
    for (const id of streams) await fixture.store.settle(id, 10);
    let admittedTokens = 0;
    for (const decision of await Promise.all(repeat(100, () => fixture.acquire([scope], 1_000)))) {
      if (decision.isAdmitted) admittedTokens += 1_000;
    }
    expect(admittedTokens).toBeGreaterThan(0);
    expect(admittedTokens).toBeLessThanOrEqual(10_000);
  });
}
