import { expect, test } from "bun:test";
import { limitStoreContract } from "../../../../test/contracts/limit-store-contract.ts";
import {
  emptied,
  limitsOver,
  steeredBy,
  valkeyClientOfTests,
} from "../../../../test/support/valkey-limits.ts";
import { describeWithValkey } from "../../../../test/support/valkey-server.ts";
import { ManualClock } from "../../../../test/support/manual-clock.ts";
import { minuteScopes } from "../../../domain/limits/limit-scope.ts";

describeWithValkey(() => {
  const valkey = valkeyClientOfTests();

  for (const random of [0, 0.5, 1]) {
    limitStoreContract(`Valkey, jitter drawn as ${random}`, async (clock) => {
      await emptied(valkey.server);
      return limitsOver(steeredBy(clock, valkey.client), {
        clock,
        random: () => random,
      });
    });
  }

  test("a lease of a busy key admits no more calls of an end user than its own limit", async () => {
    await emptied(valkey.server);
    const clock = new ManualClock({ monotonicMs: 1_000_000 });
    const limits = await limitsOver(steeredBy(clock, valkey.client), { clock, random: () => 0 });
    const scopesOf = (id: string, requestsPerMinute: number) =>
      minuteScopes(id, { requestsPerMinute, tokensPerMinute: 1_000_000 }, { owner: "account" });
    const key = scopesOf("key:a", 100_000);
    let admitted = 0;
    for (let call = 0; call < 200; call += 1) {
      const isOfJane = call % 4 === 3;
      const scopes = isOfJane ? [...key, ...scopesOf("end-user:a:jane", 5)] : [...key];
      const decision = await limits.acquire({ callId: `call ${call}`, scopes, tokens: 10 });
      if (isOfJane && decision.isAdmitted) admitted += 1;
      if (call % 40 !== 39) continue;
      clock.advance(1_000);
      await limits.tick();
    }
    expect(admitted).toBe(5);
  });
});
