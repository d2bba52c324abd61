import { expect, test } from "bun:test";
import { guaranteeLimit } from "../../src/domain/limits/slots.ts";
import { scopeOf, waitOf, type LimitStoreFixture, type Scopes } from "./limit-store-fixture.ts";

/** What every limit store must do for guarantees, which err for their owner where caps err for the operator. */
export function guaranteeContract(fixture: LimitStoreFixture): void {
  test("is free again for what comes 60 seconds later, where a cap is not", async () => {
    fixture.clock.advance(300);
    const scope = guaranteeOf("key", 100);
    const cap = scopeOf("key", { tokensPerMinute: 100 });
    await fixture.acquire([scope], 100);
    await fixture.acquire([cap], 100);
    fixture.clock.advance(58_699);
    expect(await fixture.acquire([scope], 100)).toMatchObject({ isAdmitted: false });
    fixture.clock.advance(1);
    expect(await fixture.acquire([scope], 100)).toMatchObject({ isAdmitted: true });
    fixture.clock.advance(1_300);
    expect(await fixture.acquire([cap], 100)).toMatchObject({ isAdmitted: false });
  });

  test("says what it has left of all its time, and when all of it is free again", async () => {
    fixture.clock.advance(250);
    const { state } = await fixture.acquire([guaranteeOf("key", 100, 120)], 150);
    expect(state).toEqual({
      limitRequests: Infinity,
      limitTokens: 200,
      remainingRequests: Infinity,
      remainingTokens: 50,
      resetRequestsMs: 118_750,
      resetTokensMs: 118_750,
    });
  });

  test("of a longer time takes a request of more than a minute has, and no larger one", async () => {
    const scope = guaranteeOf("key", 100, 180);
    expect(await fixture.acquire([scope], 301)).toHaveProperty("retryAfterMs", undefined);
    expect(await fixture.acquire([scope], 300)).toMatchObject({ isAdmitted: true });
    fixture.clock.advance(178_999);
    expect(await fixture.acquire([scope], 1)).toMatchObject({ isAdmitted: false });
    fixture.clock.advance(1);
    expect(await fixture.acquire([scope], 300)).toMatchObject({ isAdmitted: true });
  });

  test("tells an honest wait, in which just enough of its seconds leave", async () => {
    const scope = guaranteeOf("key", 100, 120);
    for (const tokens of [60, 60, 80]) {
      await fixture.acquire([scope], tokens);
      fixture.clock.advance(10_000);
    }
    const refused = await fixture.acquire([scope], 100);
    expect(refused).toMatchObject({ dimension: "tokens", scopeId: "key" });
    const waitMs = waitOf(refused);
    // The first two must leave. The second began at 10 s, it is 30 s now, so 99 s remain.
    expect(waitMs).toBeGreaterThanOrEqual(99_000);
    expect(waitMs).toBeLessThanOrEqual(Math.ceil(99_000 * 1.1));
    fixture.clock.advance(98_999);
    expect(await fixture.acquire([scope], 100)).toMatchObject({ isAdmitted: false });
    fixture.clock.advance(waitMs - 98_999);
    expect(await fixture.acquire([scope], 100)).toMatchObject({ isAdmitted: true });
  });

  test("forgets nothing when its limit and its time change with every request", async () => {
    const long = guaranteeOf("key", 100, 300);
    const short = guaranteeOf("key", 200, 60);
    await fixture.acquire([long], 400);
    expect(await fixture.acquire([short], 1)).toMatchObject({ isAdmitted: false });
    fixture.clock.advance(59_000);
    expect(await fixture.acquire([short], 100)).toMatchObject({ isAdmitted: true });
    expect(await fixture.acquire([long], 1)).toMatchObject({ isAdmitted: false });
    fixture.clock.advance(239_999);
    expect(await fixture.acquire([long], 1)).toMatchObject({ isAdmitted: false });
    fixture.clock.advance(1);
    expect(await fixture.acquire([long], 400)).toMatchObject({ isAdmitted: true });
    expect(await fixture.acquire([long], 1)).toMatchObject({ isAdmitted: false });
  });

  test("is settled in the second that admitted, also when a shorter time is counted by then", async () => {
    const long = guaranteeOf("key", 100, 300);
    await fixture.acquireAs("call", [long], 400);
    fixture.clock.advance(100_000);
    await fixture.acquire([guaranteeOf("key", 100)], 50);
    await fixture.store.settle("call", 150);
    expect((await fixture.left(guaranteeOf("key", 100))).remainingTokens).toBe(50);
    expect(await fixture.acquire([long], 301)).toMatchObject({ isAdmitted: false });
    expect(await fixture.acquire([long], 300)).toMatchObject({ isAdmitted: true });
  });

  test("and a cap of the same id count apart, and are charged together or not at all", async () => {
    const guarantee = guaranteeOf("key", 100);
    const cap = scopeOf("key", { requestsPerMinute: 10, tokensPerMinute: 50 });
    expect(await fixture.acquire([guarantee, cap], 60)).toMatchObject({ isAdmitted: false });
    await fixture.acquire([guarantee], 60);
    expect((await fixture.left(cap)).remainingTokens).toBe(50);
    await fixture.acquireAs("both", [guarantee, cap], 40);
    expect((await fixture.left(cap)).remainingTokens).toBe(10);
    expect(await fixture.acquire([guarantee], 1)).toMatchObject({ isAdmitted: false });
    await fixture.store.settle("both", 0);
    expect((await fixture.left(cap)).remainingTokens).toBe(50);
    expect(await fixture.acquire([guarantee], 40)).toMatchObject({ isAdmitted: true });
  });

  test("is not changed by jumps of the wall clock", async () => {
    const scope = guaranteeOf("key", 100, 120);
    await fixture.acquire([scope], 150);
    fixture.clock.jumpWall(3_600_000);
    expect(await fixture.acquire([scope], 51)).toMatchObject({ isAdmitted: false });
    fixture.clock.jumpWall(-7_200_000);
    expect(await fixture.acquire([scope], 50)).toMatchObject({ isAdmitted: true });
  });
}

function guaranteeOf(id: string, tokensPerMinute: number, seconds = 60): Scopes {
  const limit = guaranteeLimit(tokensPerMinute, seconds);
  return [
    { id, unit: "requests", window: { seconds }, limit: Infinity, owner: "contract" },
    { id, unit: "tokens", window: { seconds }, limit, owner: "contract" },
  ];
}
