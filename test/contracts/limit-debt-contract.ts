import { expect, test } from "bun:test";
import type { LimitDecision } from "../../src/store/limits/limit-store.ts";
import { scopeOf, waitOf, type LimitStoreFixture } from "./limit-store-fixture.ts";

/** What every limit store must do with what is used beyond the limit. */
export function debtContract(fixture: LimitStoreFixture): void {
  const scope = scopeOf("key", { requestsPerMinute: 1_000, tokensPerMinute: 1_000 });
  const uncapped = scopeOf("key", { requestsPerMinute: 1_000, tokensPerMinute: 1_000 }, 3);

  async function begin(callId: string, tokens: number, mostTokens: number): Promise<LimitDecision> {
    return fixture.store.acquire({ callId, scopes: uncapped, tokens, mostTokens });
  }

  test("what was used beyond the limit is paid by the minutes that follow, to the last token", async () => {
    await fixture.acquireAs("call", [scope], 100);
    await fixture.store.settle("call", 4_500);
    for (let minute = 0; minute < 4; minute += 1) {
      expect((await fixture.acquire([scope], 1)).isAdmitted).toBe(false);
      fixture.clock.advance(61_000);
    }
    expect((await fixture.left(scope)).remainingTokens).toBe(500);
    fixture.clock.advance(61_000);
    expect((await fixture.left(scope)).remainingTokens).toBe(1_000);
  });

  test("a debt is not forgotten by a key that stays away, nor paid before its time", async () => {
    await fixture.acquireAs("call", [scope], 100);
    await fixture.store.settle("call", 6_000);
    fixture.clock.advance(5 * 61_000 - 1);
    expect((await fixture.acquire([scope], 1)).isAdmitted).toBe(false);
    fixture.clock.advance(61_001);
    expect((await fixture.acquire([scope], 1_000)).isAdmitted).toBe(true);
  });

  test("the wait for the end of a debt is honest", async () => {
    await fixture.acquireAs("call", [scope], 100);
    await fixture.store.settle("call", 2_500);
    const waitMs = waitOf(await fixture.acquire([scope], 400));
    expect(waitMs).toBeGreaterThan(61_000);
    fixture.clock.advance(waitMs);
    expect((await fixture.acquire([scope], 400)).isAdmitted).toBe(true);
  });

  test("a call under way counts with what it has used, and is settled to what that was", async () => {
    await begin("call", 100, 3_000);
    await fixture.store.use("call", 700);
    await fixture.store.use("call", 600);
    expect((await fixture.left(scope)).remainingTokens).toBe(300);
    await fixture.store.settle("call", 650);
    expect((await fixture.left(scope)).remainingTokens).toBe(350);
    await fixture.store.use("call", 9_000);
    expect((await fixture.left(scope)).remainingTokens).toBe(350);
  });

  test("what a call has used counts from when it was used, long after its admission", async () => {
    await begin("call", 100, 3_000);
    fixture.clock.advance(120_000);
    await fixture.store.use("call", 800);
    expect((await fixture.left(scope)).remainingTokens).toBe(300);
    fixture.clock.advance(60_000);
    expect((await fixture.left(scope)).remainingTokens).toBe(300);
    fixture.clock.advance(1_000);
    expect((await fixture.left(scope)).remainingTokens).toBe(1_000);
  });

  test("calls under way could use at most so many times the limit beyond their charges", async () => {
    expect((await begin("one", 10, 2_010)).isAdmitted).toBe(true);
    const refused = await begin("two", 10, 1_011);
    expect(refused).toMatchObject({
      isAdmitted: false,
      dimension: "tokens",
      overrun: { limit: 3_000, used: 2_000, asked: 1_001 },
    });
    expect(waitOf(refused)).toBeGreaterThan(0);
    expect((await begin("three", 10, 1_010)).isAdmitted).toBe(true);
    expect((await fixture.acquire([uncapped], 10)).isAdmitted).toBe(true);
    await fixture.store.settle("one", 10);
    expect((await begin("two", 10, 1_011)).isAdmitted).toBe(true);
  });

  test("a call that could use more than all that alone is never admitted", async () => {
    const refused = await begin("call", 10, 3_011);
    expect(refused).toMatchObject({ isAdmitted: false, retryAfterMs: undefined });
  });

  test("that one alone can never run is told though the limit is full as well", async () => {
    await fixture.acquire([scope], 1_000);
    expect(await begin("call", 10, 3_011)).toMatchObject({
      retryAfterMs: undefined,
      overrun: { asked: 3_001 },
    });
  });

  test("what is used beyond a limit of several owners leaves with its second", async () => {
    const pool = scope.map((each) => ({ ...each, isShared: true }));
    await fixture.acquireAs("call", [pool], 100);
    await fixture.store.settle("call", 50_000);
    expect((await fixture.acquire([pool], 1)).isAdmitted).toBe(false);
    fixture.clock.advance(61_000);
    expect((await fixture.acquire([pool], 1_000)).isAdmitted).toBe(true);
  });

  test("what calls may still use is not forgotten while they run, however long", async () => {
    await begin("one", 10, 3_010);
    await fixture.pass(500_000);
    expect((await begin("two", 10, 11)).isAdmitted).toBe(false);
    await fixture.store.use("one", 1_010);
    expect(await begin("two", 0, 1_001)).toMatchObject({ overrun: { used: 2_000 } });
  });
}
