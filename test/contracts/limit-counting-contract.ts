import { expect, test } from "bun:test";
import type { CountedRequest } from "../../src/domain/limits/limit-scope.ts";
import { scopeOf, waitOf, type LimitStoreFixture, type Scopes } from "./limit-store-fixture.ts";

/** What every limit store must do with requests that are counted before what they ask for is known. */
export function countingContract(fixture: LimitStoreFixture): void {
  const scope = scopeOf("key", { requestsPerMinute: 3, tokensPerMinute: 100 });

  async function count(...scopes: readonly Scopes[]): Promise<CountedRequest> {
    const decision = await fixture.store.count(scopes.flat());
    if (!decision.isAdmitted) throw new Error("the request was refused");
    return decision.counted;
  }

  test("a counted request is one of its minute, and its tokens come later without another", async () => {
    const counted = await count(scope);
    fixture.clock.advance(5_000);
    const request = { callId: "call", scopes: counted.scopes, tokens: 40, counted };
    expect(await fixture.store.acquire(request)).toMatchObject({
      isAdmitted: true,
      state: { remainingRequests: 2, remainingTokens: 60 },
    });
    fixture.clock.advance(56_000);
    expect(await fixture.left(scope)).toMatchObject({ remainingRequests: 3, remainingTokens: 60 });
    await fixture.store.settle("call", 10);
    expect(await fixture.left(scope)).toMatchObject({ remainingTokens: 90 });
  });

  test("a request beyond the limit is refused with the wait, and changes nothing", async () => {
    for (let index = 0; index < 3; index += 1) await count(scope);
    const before = await fixture.left(scope);
    const refused = await fixture.store.count(scope);
    if (refused.isAdmitted) throw new Error("the request was admitted");
    expect(refused).toMatchObject({ scopeId: "key", dimension: "requests" });
    expect(await fixture.left(scope)).toEqual(before);
    fixture.clock.advance(waitOf(refused));
    expect((await fixture.store.count(scope)).isAdmitted).toBe(true);
  });

  test("a request that was counted has room for its tokens, though it was the last", async () => {
    await count(scope);
    await count(scope);
    const counted = await count(scope);
    const request = { callId: "call", scopes: counted.scopes, tokens: 100, counted };
    expect((await fixture.store.acquire(request)).isAdmitted).toBe(true);
    const late = await fixture.store.acquire({ ...request, callId: "late" });
    expect(late).toMatchObject({ isAdmitted: false, dimension: "tokens" });
  });

  test("a request that is taken back makes room for one, in the second that counted it", async () => {
    const first = await count(scope);
    fixture.clock.advance(10_000);
    await count(scope);
    await count(scope);
    await fixture.store.uncount(first);
    expect((await fixture.left(scope)).remainingRequests).toBe(1);
    await count(scope);
    fixture.clock.advance(51_000);
    expect((await fixture.left(scope)).remainingRequests).toBe(0);
  });

  test("a request that is taken back after its minute gives nothing", async () => {
    const counted = await count(scope);
    fixture.clock.advance(61_000);
    await count(scope);
    await fixture.store.uncount(counted);
    expect((await fixture.left(scope)).remainingRequests).toBe(2);
  });

  test("a request is counted in all scopes or in none, and taken back from all", async () => {
    const account = scopeOf("account", { requestsPerMinute: 1 });
    const counted = await count(scope, account);
    const refused = await fixture.store.count([...scope, ...account]);
    expect(refused).toMatchObject({ isAdmitted: false, scopeId: "account" });
    expect((await fixture.left(scope)).remainingRequests).toBe(2);
    await fixture.store.uncount(counted);
    expect((await fixture.left(scope)).remainingRequests).toBe(3);
    expect((await fixture.left(account)).remainingRequests).toBe(1);
  });
}
