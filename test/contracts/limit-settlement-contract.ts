import { expect, test } from "bun:test";
import { scopeOf, type LimitStoreFixture } from "./limit-store-fixture.ts";

export function settlementContract(fixture: LimitStoreFixture): void {
  const scope = scopeOf("key", { requestsPerMinute: 10, tokensPerMinute: 1_000 });

  test("what was reserved and not used is free again, but the request stays counted", async () => {
    await fixture.acquireAs("call", [scope], 900);
    await fixture.store.settle("call", 0);
    expect(await fixture.left(scope)).toMatchObject({
      remainingRequests: 9,
      remainingTokens: 1_000,
    });
  });

  test("what was used beyond the reservation is counted, and nothing is below zero", async () => {
    await fixture.acquireAs("call", [scope], 100);
    await fixture.store.settle("call", 5_000);
    expect((await fixture.left(scope)).remainingTokens).toBe(0);
    expect(await fixture.acquire([scope], 0)).toMatchObject({ isAdmitted: false });
  });

  test("settling twice is settling once", async () => {
    await fixture.acquireAs("call", [scope], 500);
    await fixture.store.settle("call", 100);
    await fixture.store.settle("call", 100);
    await fixture.store.settle("call", 0);
    expect((await fixture.left(scope)).remainingTokens).toBe(900);
  });

  test("a call nobody knows is left alone", async () => {
    await fixture.acquire([scope], 500);
    await fixture.store.settle("no such call", 9_999);
    expect((await fixture.left(scope)).remainingTokens).toBe(500);
  });

  test.each([-1, 1.5, NaN, Infinity, 2 ** 53])(
    "a count of %p tokens leaves what was reserved charged, and ends the call",
    async (tokens) => {
      await fixture.acquireAs("call", [scope], 500);
      await fixture.store.settle("call", tokens);
      expect((await fixture.left(scope)).remainingTokens).toBe(500);
      await fixture.store.settle("call", 200);
      expect((await fixture.left(scope)).remainingTokens).toBe(500);
    },
  );

  test("a correction leaves the window together with its admission", async () => {
    await fixture.acquireAs("call", [scope], 100);
    fixture.clock.advance(50_000);
    await fixture.store.settle("call", 700);
    expect((await fixture.left(scope)).remainingTokens).toBe(300);
    fixture.clock.advance(11_000);
    expect((await fixture.left(scope)).remainingTokens).toBe(1_000);
  });
}

export function lateSettlementContract(fixture: LimitStoreFixture): void {
  const scope = scopeOf("key", { tokensPerMinute: 1_000 });

  test("a refund after the slot has left changes nothing", async () => {
    await fixture.acquireAs("call", [scope], 800);
    fixture.clock.advance(61_000);
    await fixture.acquire([scope], 500);
    await fixture.store.settle("call", 0);
    expect((await fixture.left(scope)).remainingTokens).toBe(500);
  });

  test("tokens beyond the reservation are a debt of now once the slot has left", async () => {
    await fixture.acquireAs("call", [scope], 100);
    fixture.clock.advance(300_000);
    await fixture.store.settle("call", 350);
    expect((await fixture.left(scope)).remainingTokens).toBe(750);
    fixture.clock.advance(60_999);
    expect((await fixture.left(scope)).remainingTokens).toBe(750);
    fixture.clock.advance(1);
    expect((await fixture.left(scope)).remainingTokens).toBe(1_000);
  });
}
