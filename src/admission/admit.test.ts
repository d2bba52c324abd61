import { describe, expect, test } from "bun:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import {
  callerOf,
  callOf,
  gatewayErrorOf,
  modelOf,
  plainWork,
  snapshotOf,
  targetOf,
} from "../../test/support/pipeline-fixtures.ts";
import { plainKey } from "../../test/support/plain-key.ts";
import type { CapacityMode } from "../domain/limits/capacity.ts";
import type { GatewayError } from "../domain/errors/gateway-error.ts";
import type { Limits, Plan } from "../domain/limits/plan.ts";
import { Calendar } from "../domain/money/calendar.ts";
import { PublishedPrices } from "../domain/money/price.ts";
import { MemoryLimitStore } from "../store/limits/memory/limit-store.ts";
import { refusedByShare } from "../store/limits/decision.ts";
import { admissionRefusal } from "./admission-refusal.ts";
import {
  type Admission,
  type AdmissionRequest,
  admit as admitNow,
  canEverFit,
  countRequest,
} from "./admit.ts";
import { minuteScopes } from "../domain/limits/limit-scope.ts";

const money = { prices: new PublishedPrices(), calendar: new Calendar() };

/** Refusals are rejections, at once or later. */
async function admit(...asked: Parameters<typeof admitNow>): Promise<Admission> {
  return admitNow(...asked);
}

function setUp(limits: Partial<Limits>) {
  const clock = new ManualClock({ wallMs: 1_000_000, monotonicMs: 70_000 });
  const store = new MemoryLimitStore({
    clock,
    random: () => 0,
  });
  const caller = callerOf({ requestsPerMinute: 100, tokensPerMinute: 1_000, ...limits });
  let calls = 0;
  const ask = (tokens: number) => {
    calls += 1;
    const request: AdmissionRequest = {
      call: callOf({ id: `req_${calls}`, caller }),
      model: modelOf(),
      estimate: { inputTokens: tokens, outputTokens: 0 },
      output: { cap: 0, choices: 1 },
      ...plainWork,
    };
    return admit(request, { limits: store, clock, ...money });
  };
  const refused = (tokens: number): Promise<GatewayError> => gatewayErrorOf(ask(tokens));
  return { ask, refused, clock, store, caller };
}

test("a refusal by a share of the limits names the share, in its message and its explanation", async () => {
  const { store, caller, clock } = setUp({});
  const scopesOf = (requestsPerMinute: number) =>
    minuteScopes("key:key_a", { requestsPerMinute, tokensPerMinute: 1_000 });
  for (const callId of ["a", "b"]) store.acquire({ callId, scopes: scopesOf(2), tokens: 1 });
  const own = store.acquire({ callId: "c", scopes: scopesOf(2), tokens: 1 });
  if (own.isAdmitted) throw new Error("the share is used up");
  const decision = refusedByShare(own, { scopes: scopesOf(100), tokens: 1 });
  const request = { call: callOf({ id: "req_1", caller }), model: modelOf() };
  const now = clock.now();
  const { message, explanation } = admissionRefusal({ request, decision, askedTokens: 1, now });
  expect(message).toContain(
    "Limit 100 (for now 2: the gateway's limits are degraded), Used 2, Requested 1.",
  );
  expect(explanation?.summary).toStartWith("2 of 2 requests were used in the last 60 s.");
  expect(explanation?.summary).toContain("The limit is 100; this process grants its share");
  expect(explanation?.window).toMatchObject({ limit: 2, used: 2 });
});

test("a refusal for tokens has the window's use and the time at which the request would fit", async () => {
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
    summary:
      "900 of 1000 tokens were used in the last 60 s. The request needs an estimated 350 more.",
    model: "alpha-sonnet-4",
    window: {
      scopeId: "key:key_a",
      limit: 1_000,
      used: 900,
      requested: 350,
      // The first second, begun 10.25 s ago, is counted for 61 s.
      freeAt: clock.now() + 50_750,
    },
  });
});

test("a refusal in debt has the debt and the time at which it is paid", async () => {
  const { ask, refused, store } = setUp({});
  await ask(300);
  store.settle("req_1", 2_500);
  const error = await refused(100);
  expect(error.message).toContain("Limit 1000, Used 2500, Requested 100 (estimated).");
  expect(error.explanation?.summary).toBe(
    "1000 of 1000 tokens were used in the last 60 s. The request needs an estimated 100 more. Calls before it used " +
      "1500 tokens beyond the limit, which are paid first.",
  );
});

test("with limits in memory, a call under limits of its end user is admitted without a promise", async () => {
  const { store, clock, caller } = setUp({});
  const endUser = minuteScopes("end-user:key_a:jane", {
    requestsPerMinute: 1,
    tokensPerMinute: 100,
  });
  const ask = (id: string) => {
    const call = callOf({ id, caller });
    const counted = countRequest("call", call, { limits: store, clock });
    if (counted === undefined || counted instanceof Promise) throw new Error("it was not counted");
    const request = {
      call: { ...call, counted },
      model: modelOf(),
      estimate: { inputTokens: 10, outputTokens: 0 },
      output: { cap: 0, choices: 1 },
      endUser,
      ...plainWork,
    };
    return admitNow(request, { limits: store, clock, ...money });
  };
  expect(ask("req_1")).not.toBeInstanceOf(Promise);
  const { message } = await gatewayErrorOf(Promise.resolve(ask("req_2")));
  expect(message).toContain(
    "this end user of application search on requests per min (RPM): Limit 1",
  );
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

test("a request that never fits is too large, without a time to retry", async () => {
  const { refused } = setUp({});
  const { explanation } = await refused(1_001);
  expect(explanation).toMatchObject({
    rule: "request_too_large",
    window: { limit: 1_000, used: 0, requested: 1_001 },
  });
  expect(explanation?.window).toHaveProperty("freeAt", undefined);
});

test("a plan without requests is not a matter of size", async () => {
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

interface Wish {
  readonly input: number;
  readonly output?: number;
  readonly isCapped?: boolean;
  readonly capacity?: CapacityMode;
  readonly alias?: "pooled" | "plain";
}

/** A key with three units of 100 tokens in a pool, and a plan of 1000. */
function setUpGuarantee(units = 3, contextWindow = 200) {
  const clock = new ManualClock({ wallMs: 1_000_000, monotonicMs: 70_000 });
  const options = { clock, random: () => 0 };
  const store = new MemoryLimitStore(options);
  const pool = {
    name: "shared",
    kind: "shared" as const,
    tokensPerMinute: 10_000,
    maxInFlight: undefined,
    onDemandFloorPercent: 20,
    unitTokensPerMinute: 100,
  };
  const key = plainKey({ provisionedUnits: units, provisionedPool: "shared" });
  const caller = { ...callerOf({ requestsPerMinute: 100, tokensPerMinute: 1_000 }), key };
  const snapshot = { ...snapshotOf(["up"]), pools: new Map([["shared", pool]]) };
  const models = {
    pooled: modelOf({
      contextWindow,
      targets: [targetOf("up"), targetOf("up", { pool: "shared" })],
    }),
    plain: modelOf({ alias: "plain", contextWindow }),
  };
  let calls = 0;
  const requestOf = ({ input, output = 0, isCapped = true, ...wish }: Wish): AdmissionRequest => {
    calls += 1;
    const { capacity = "auto", alias = "pooled" } = wish;
    return {
      call: callOf({
        id: `req_${calls}`,
        caller,
        snapshot,
        options: { capacity, deadlineAt: undefined },
      }),
      model: models[alias],
      estimate: { inputTokens: input, outputTokens: output },
      output: { cap: isCapped ? output : undefined, choices: 1 },
      ...plainWork,
    };
  };
  const services = { limits: store, clock, ...money };
  const ask = (wish: Wish) => admit(requestOf(wish), services);
  const leftOfPlan = () => store.peek(minuteScopes("key:key_a", caller.limits));
  return { ask, requestOf, leftOfPlan, store, clock, services };
}

describe("a key with provisioned throughput", () => {
  test("uses its guarantee first, and then its plan, in another class", async () => {
    const { ask, leftOfPlan } = setUpGuarantee();
    const admissions = [];
    for (const input of [200, 100, 50]) admissions.push(await ask({ input }));
    expect(admissions.map(({ capacityClass }) => capacityClass)).toEqual([
      "provisioned",
      "provisioned",
      "spillover",
    ]);
    expect(admissions.map(({ state }) => state.remainingTokens)).toEqual([100, 0, 950]);
    expect(admissions[0]?.state).toMatchObject({ limitRequests: Infinity, limitTokens: 300 });
    expect(leftOfPlan()).toMatchObject({ remainingRequests: 99, remainingTokens: 950 });
  });

  test("is settled where it was charged", async () => {
    const { ask, leftOfPlan, store } = setUpGuarantee();
    await ask({ input: 300 });
    const spilled = await ask({ input: 400 });
    expect(spilled.reservedTokens).toBe(400);
    store.settle("req_1", 100);
    store.settle("req_2", 100);
    expect(leftOfPlan()).toMatchObject({ remainingRequests: 99, remainingTokens: 900 });
    const again = await ask({ input: 200 });
    expect(again).toMatchObject({ capacityClass: "provisioned", state: { remainingTokens: 0 } });
  });

  test("that asks for on-demand capacity gets that, and keeps its guarantee", async () => {
    const { ask, leftOfPlan } = setUpGuarantee();
    const admission = await ask({ input: 200, capacity: "on-demand-only" });
    expect(admission.capacityClass).toBe("on-demand");
    expect(leftOfPlan().remainingTokens).toBe(800);
    expect((await ask({ input: 300 })).capacityClass).toBe("provisioned");
  });

  test("that asks for its guarantee alone gets the time at which it has room again", async () => {
    const { ask, leftOfPlan, clock } = setUpGuarantee();
    await ask({ input: 200, capacity: "provisioned-only" });
    clock.advance(10_250);
    const error = await gatewayErrorOf(ask({ input: 101, capacity: "provisioned-only" }));
    expect(error).toMatchObject({ status: 429, code: "rate_limit_exceeded", type: "tokens" });
    expect(error.message).toBe(
      "Rate limit reached for alpha-sonnet-4 in application search on provisioned tokens per " +
        "60 s: Limit 300, Used 200, Requested 101 (estimated). Please try again in 48.75s.",
    );
    expect(error.headers).toEqual({
      "x-ratelimit-limit-tokens": "300",
      "x-ratelimit-remaining-tokens": "100",
      "x-ratelimit-reset-tokens": "48.75s",
      "retry-after": "49",
      "retry-after-ms": "48750",
    });
    expect(error.explanation).toMatchObject({
      rule: "guarantee_used_up",
      summary:
        "200 of 300 tokens were used in the last 60 s. The request needs an estimated 101 more.",
      window: { scopeId: "guarantee:key_a", limit: 300, used: 200, requested: 101 },
    });
    clock.advance(48_750);
    const admission = await ask({ input: 300, capacity: "provisioned-only" });
    expect(admission.capacityClass).toBe("provisioned");
    expect(leftOfPlan().remainingRequests).toBe(100);
  });

  test("is told what limits of its end user in audit would have refused", async () => {
    const { requestOf, services } = setUpGuarantee();
    const asked = requestOf({ input: 200, capacity: "provisioned-only" });
    const told: GatewayError[] = [];
    const origin = {
      ...asked.call.origin,
      wouldBeRefused: (error: GatewayError) => told.push(error),
    };
    const terms = { owner: asked.call.caller.key.accountId };
    const [requests, tokens] = minuteScopes(
      "end-user:key_a:jane",
      { requestsPerMinute: 10, tokensPerMinute: 100 },
      terms,
    );
    const endUser = [requests, tokens].flatMap((scope) => scope && { ...scope, isAudited: true });
    const call = { ...asked.call, origin } as never;
    const admission = await admit({ ...asked, call, endUser }, services);
    expect(admission.capacityClass).toBe("provisioned");
    expect(told.map(({ explanation }) => explanation?.rule)).toEqual(["request_too_large"]);
  });

  test("has it at no model without a target in the pool", async () => {
    const { ask } = setUpGuarantee();
    expect((await ask({ input: 10, alias: "plain" })).capacityClass).toBe("on-demand");
    const refused = ask({ input: 10, alias: "plain", capacity: "provisioned-only" });
    const error = await gatewayErrorOf(refused);
    expect(error).toMatchObject({ status: 400, code: "invalid_value", param: "x-sluice-capacity" });
  });

  test("and without units, or with units of a removed pool, is like any other", async () => {
    const { requestOf, services } = setUpGuarantee(0);
    const request = requestOf({ input: 10 });
    expect((await admit(request, services)).capacityClass).toBe("on-demand");
    const { requestOf: requestWithUnits, services: others } = setUpGuarantee();
    const gone = requestWithUnits({ input: 10 });
    const call = { ...gone.call, snapshot: snapshotOf(["up"]) };
    expect((await admit({ ...gone, call }, others)).capacityClass).toBe("on-demand");
  });

  test("with few units has time enough for the largest request of the model", async () => {
    const { ask, clock } = setUpGuarantee(1, 750);
    const large = await ask({ input: 750, capacity: "provisioned-only" });
    expect(large.state.limitTokens).toBe(800);
    const refused = await gatewayErrorOf(ask({ input: 51, capacity: "provisioned-only" }));
    expect(refused.message).toContain("provisioned tokens per 480 s: Limit 800, Used 750");
    clock.advance(478_999);
    await gatewayErrorOf(ask({ input: 51, capacity: "provisioned-only" }));
    clock.advance(1);
    await ask({ input: 750, capacity: "provisioned-only" });
  });

  test("reserves of a guessed output what the guarantee has room for, of a cap all", async () => {
    const { ask } = setUpGuarantee();
    const guessed = await ask({ input: 100, output: 5_000, isCapped: false });
    expect(guessed).toMatchObject({ capacityClass: "provisioned", reservedTokens: 300 });
    const capped = await ask({ input: 100, output: 500 });
    expect(capped).toMatchObject({ capacityClass: "spillover", reservedTokens: 600 });
    const large = ask({ input: 100, output: 201, capacity: "provisioned-only" });
    const error = await gatewayErrorOf(large);
    expect(error.headers["x-should-retry"]).toBe("false");
    expect(error.explanation).toMatchObject({
      rule: "request_too_large",
      summary:
        "The request asks for an estimated 301 tokens, more than the 300 of 60 s of the guarantee.",
    });
  });

  test("gets a time to retry a call that only its guarantee can take", async () => {
    const { ask } = setUpGuarantee(30, 3_000);
    expect((await ask({ input: 2_000 })).capacityClass).toBe("provisioned");
    const error = await gatewayErrorOf(ask({ input: 2_000 }));
    expect(error.explanation?.rule).toBe("guarantee_used_up");
    expect(error.headers["retry-after"]).toBe("59");
  });

  test("can fit what either of its limits takes, unless it asks for one alone", () => {
    const { requestOf } = setUpGuarantee(30, 3_000);
    const fits = (input: number, capacity: CapacityMode) =>
      canEverFit(requestOf({ input, capacity }));
    expect([fits(3_000, "auto"), fits(3_001, "auto")]).toEqual([true, false]);
    expect([fits(1_000, "on-demand-only"), fits(1_001, "on-demand-only")]).toEqual([true, false]);
    expect(fits(3_000, "provisioned-only")).toBe(true);
    const { requestOf: requestOfFew } = setUpGuarantee();
    expect(canEverFit(requestOfFew({ input: 301 }))).toBe(true);
    expect(canEverFit(requestOfFew({ input: 301, capacity: "provisioned-only" }))).toBe(false);
  });

  test("gives the request back that its plan counted, when its guarantee takes the call", async () => {
    const { requestOf, leftOfPlan, services } = setUpGuarantee();
    const { call, ...rest } = requestOf({ input: 10 });
    const counted = await countRequest("call", call, services);
    expect(leftOfPlan().remainingRequests).toBe(99);
    const admission = await admit({ ...rest, call: { ...call, counted } }, services);
    expect(admission.capacityClass).toBe("provisioned");
    expect(leftOfPlan()).toMatchObject({ remainingRequests: 100, remainingTokens: 1_000 });
  });

  test("gives the request back as well when only its guarantee was asked, and had no room", async () => {
    const { ask, requestOf, leftOfPlan, services } = setUpGuarantee();
    await ask({ input: 300 });
    const { call, ...rest } = requestOf({ input: 10, capacity: "provisioned-only" });
    const counted = await countRequest("call", call, services);
    const refused = await gatewayErrorOf(admit({ ...rest, call: { ...call, counted } }, services));
    expect(refused.headers["retry-after"]).toBeDefined();
    expect(leftOfPlan().remainingRequests).toBe(100);
  });

  test("is let in beyond the requests of its plan, for its guarantee alone", async () => {
    const { ask, requestOf, services } = setUpGuarantee();
    for (let index = 0; index < 100; index += 1) {
      const { call } = requestOf({ input: 1 });
      expect(await countRequest("call", call, services)).toBeDefined();
    }
    const { call } = requestOf({ input: 1 });
    expect(await countRequest("call", call, services)).toBeUndefined();
    expect((await ask({ input: 10 })).capacityClass).toBe("provisioned");
    const refused = await gatewayErrorOf(ask({ input: 10, capacity: "on-demand-only" }));
    expect(refused.explanation?.rule).toBe("requests_per_minute");
  });
});

describe("a request that was counted when it came", () => {
  async function counted(tokens: number, used = 0) {
    const { ask, store, clock, caller } = setUp({});
    if (used > 0) await ask(used);
    const call = callOf({ id: "req_counted", caller });
    const counting = await countRequest("call", call, { limits: store, clock });
    const request = {
      call: { ...call, counted: counting },
      model: modelOf(),
      estimate: { inputTokens: tokens, outputTokens: 0 },
      output: { cap: 0, choices: 1 },
      ...plainWork,
    };
    const scopes = minuteScopes("key:key_a", caller.limits);
    const left = () => store.peek(scopes);
    return { admitting: admit(request, { limits: store, clock, ...money }), left };
  }

  test("is one request with its tokens", async () => {
    const { admitting, left } = await counted(300);
    expect((await admitting).state).toMatchObject({ remainingRequests: 99, remainingTokens: 700 });
    expect(left()).toMatchObject({ remainingRequests: 99, remainingTokens: 700 });
  });

  test("is given back when it came too early", async () => {
    const { admitting, left } = await counted(300, 900);
    expect((await gatewayErrorOf(admitting)).headers["retry-after"]).toBeDefined();
    expect(left().remainingRequests).toBe(99);
  });

  test("has cost a request when it is too large for the plan", async () => {
    const { admitting, left } = await counted(1_001);
    expect((await gatewayErrorOf(admitting)).message).toStartWith("Request too large");
    expect(left().remainingRequests).toBe(99);
  });
});

describe("a call without a cap", () => {
  const wish = { inputTokens: 100, outputTokens: 500 };

  function setUpPlan(terms: Pick<Plan, "uncapped"> & Partial<Plan>) {
    const { store, clock, caller } = setUp({});
    const plan: Plan = {
      name: "standard",
      limits: undefined,
      provisioned: false,
      queueTimeoutMs: 0,
      isIdempotent: false,
      responsesKeepMs: 0,
      overrunFactor: 3,
      whenLimitsUnavailable: "local",
      ...terms,
    };
    const snapshot = { ...snapshotOf(["up"]), plans: new Map([["standard", plan]]) };
    let calls = 0;
    const ask = (choices = 1, estimate = wish) => {
      calls += 1;
      const call = callOf({ id: `req_${calls}`, caller, snapshot });
      const model = modelOf({ maxOutputTokens: 1_000 });
      const output = { cap: undefined, choices };
      const request = { call, model, estimate, output, ...plainWork };
      return admit(request, { limits: store, clock, ...money });
    };
    return { ask };
  }

  test("reserves its guess, and may use the maximum of the model beyond it", async () => {
    const { ask } = setUpPlan({ uncapped: "debt", overrunFactor: 1 });
    expect(await ask()).toMatchObject({ reservedTokens: 600, outputCap: undefined });
    // The first can use 500 more, the second 700 beyond the 400 that are left to it.
    const refused = await gatewayErrorOf(ask(1, { ...wish, outputTokens: 300 }));
    expect(refused.message).toContain("set `max_completion_tokens`");
    expect(refused.explanation?.rule).toBe("uncapped_output");
    expect(refused.headers["retry-after"]).toBeDefined();
  });

  test("is refused for good when it alone could use too much, choices included", async () => {
    const { ask } = setUpPlan({ uncapped: "debt", overrunFactor: 3 });
    const refused = await gatewayErrorOf(ask(128));
    expect(refused).toMatchObject({ status: 429 });
    expect(refused.headers["x-should-retry"]).toBe("false");
    expect(refused.message).toContain("set `max_completion_tokens`");
  });

  test("is sent with its guess as the cap where the plan has it so", async () => {
    const { ask } = setUpPlan({ uncapped: "cap" });
    expect(await ask(4)).toMatchObject({ reservedTokens: 600, outputCap: 125 });
  });

  test("reserves the longest answer of the model where the plan has it so", async () => {
    const { ask } = setUpPlan({ uncapped: "maximum" });
    const refused = await gatewayErrorOf(ask());
    expect(refused.explanation).toMatchObject({ window: { requested: 1_100 } });
    expect(refused.message).toStartWith("Request too large");
  });
});
