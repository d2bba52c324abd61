import { expect, test } from "bun:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { callerOf, callOf, gatewayErrorOf, modelOf } from "../../test/support/pipeline-fixtures.ts";
import type { GatewayError } from "../domain/gateway-error.ts";
import type { Limits } from "../domain/plan.ts";
import { createMemoryLimitStore } from "../storage/memory/limit-store.ts";
import { admit, type AdmissionRequest } from "./admit.ts";

function setUp(limits: Partial<Limits>) {
  const clock = new ManualClock({ wallMs: 1_000_000, monotonicMs: 70_000 });
  const store = createMemoryLimitStore({
    clock,
    random: () => 0,
    reservationTtlMs: 60_000,
    scopeLimit: 10,
  });
  const caller = callerOf({ requestsPerMinute: 100, tokensPerMinute: 1_000, ...limits });
  let calls = 0;
  const ask = (tokens: number) => {
    calls += 1;
    const request: AdmissionRequest = {
      call: callOf({ id: `req_${calls}`, caller }),
      resolved: { model: modelOf() },
      estimate: { inputTokens: tokens, outputTokens: 0, likelyInputTokens: tokens },
      isCapped: true,
    };
    return admit(request, { limits: store, clock });
  };
  const refused = (tokens: number): Promise<GatewayError> => gatewayErrorOf(ask(tokens));
  return { ask, refused, clock };
}

test("a refusal for tokens says what the window held and when the request would have fitted", async () => {
  const { ask, refused, clock } = setUp({});
  await ask(300);
  await ask(200);
  clock.advance(10_000);
  await ask(400);
  clock.advance(250);
  const { explanation, status } = await refused(350);
  expect(status).toBe(429);
  expect(explanation).toEqual({
    rule: "tokens_per_minute",
    summary: "The last 60 s hold 900 of 1000 tokens, and the request asks for 350.",
    keyId: "key_a",
    publicId: "aaaaaaaa",
    accountId: callerOf().key.accountId,
    application: "search",
    environment: "test",
    model: "alpha-sonnet-4",
    window: {
      scopeId: "key:key_a",
      limit: 1_000,
      used: 900,
      requested: 350,
      // The first second, begun 10.25 s ago, is counted for 61 s.
      freeAt: clock.now() + 50_750,
      slots: [
        { ageMs: 10_250, requests: 2, tokens: 500 },
        { ageMs: 250, requests: 1, tokens: 400 },
      ],
    },
  });
});

test("a refusal for requests counts requests", async () => {
  const { ask, refused } = setUp({ requestsPerMinute: 2 });
  await ask(1);
  await ask(1);
  expect((await refused(1)).explanation).toMatchObject({
    rule: "requests_per_minute",
    window: { limit: 2, used: 2, requested: 1 },
  });
});

test("a request that no wait makes fit is too large, and is free never", async () => {
  const { refused } = setUp({});
  const { explanation } = await refused(1_001);
  expect(explanation).toMatchObject({
    rule: "request_too_large",
    window: { limit: 1_000, used: 0, requested: 1_001, slots: [] },
  });
  expect(explanation?.window).toHaveProperty("freeAt", undefined);
});

test("a plan without any request is no matter of size", async () => {
  const { refused } = setUp({ requestsPerMinute: 0 });
  expect((await refused(1)).explanation?.rule).toBe("requests_per_minute");
});

test("nothing of the explanation is in the answer", async () => {
  const { ask, refused } = setUp({ requestsPerMinute: 1 });
  await ask(1);
  const error = await refused(1);
  const sent = JSON.stringify([error.toBody(), error.headers]);
  for (const inner of ["key_a", "aaaaaaaa", "scope", "slots", "requests_per_minute"]) {
    expect(sent).not.toContain(inner);
  }
});
