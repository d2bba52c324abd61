import { describe, expect, test } from "bun:test";
import {
  callerOf,
  callOf,
  modelOf,
  plainWork,
  targetOf,
} from "../../test/support/pipeline-fixtures.ts";
import { budgetOf } from "../../test/contracts/limit-budget-contract.ts";
import { plainKey } from "../../test/support/plain-key.ts";
import { GatewayError } from "../domain/errors/gateway-error.ts";
import type { Budget, BudgetScope } from "../domain/money/budget.ts";
import { Calendar } from "../domain/money/calendar.ts";
import type { PromptCache } from "../domain/model.ts";
import type { CacheTime } from "../domain/money/billed-classes.ts";
import { type Price, PublishedPrices } from "../domain/money/price.ts";
import { budgetsOf, dearestNano, missingAt, type MoneyRequest } from "./reserve-money.ts";

const plain: Price = {
  input: 1_000_000,
  cache_read: 100_000,
  cache_write: 1_250_000,
  cache_write_1h: 2_000_000,
  output: 5_000_000,
};
const tokens = { inputTokens: 1_000, outputTokens: 200 };

function bookOf(prices: Readonly<Record<string, Price>>): PublishedPrices {
  const book = new PublishedPrices();
  const targets = Object.fromEntries(
    Object.entries(prices).map(([id, price]) => [
      id,
      { price, source: "test", confidence: "configured" } as const,
    ]),
  );
  book.publish([{ version: 1, validFrom: 0, targets }], 0);
  return book;
}

function requestOf(values: Partial<MoneyRequest> = {}): MoneyRequest {
  return { call: callOf(), model: modelOf(), ...plainWork, ...values };
}

const up = { target: targetOf("up"), model: modelOf() };

function cachedRequest(
  promptCache: PromptCache | undefined,
  time: CacheTime,
  values: Partial<MoneyRequest> = {},
): MoneyRequest {
  const model = modelOf({ targets: [{ ...targetOf("up"), promptCache }] });
  return requestOf({ model, work: { inputs: 1, cacheTime: () => time }, ...values });
}

describe("what a call reserves", () => {
  test("is its input and its output", () => {
    expect(dearestNano(requestOf(), tokens, { prices: bookOf({ "up/m": plain }) })).toBe(
      1_000_000 + 1_000_000,
    );
  });

  const written = 1_250;
  const cases: readonly (readonly [PromptCache["filled"] | undefined, CacheTime, number])[] = [
    [undefined, "hour", 1_000],
    ["as_asked", undefined, 1_000],
    ["as_asked", "minutes", written],
    ["as_asked", "hour", 2_000],
    ["always", undefined, written],
    ["always", "hour", 2_000],
    // It has a price of writes, so the provider makes some.
    ["by_provider", undefined, written],
  ];
  test.each(cases)(
    "is its input at the rate of a write to a cache, where there may be one: %s, marked for %s",
    (filled, time, micro) => {
      const request = cachedRequest(filled && { filled, keepsAnHour: true }, time);
      const nano = dearestNano(request, tokens, { prices: bookOf({ "up/m": plain }) });
      expect(nano).toBe(micro * 1_000 + 1_000_000);
    },
  );

  test("is that of a write for minutes where nothing is kept for an hour", () => {
    const request = cachedRequest({ filled: "as_asked", keepsAnHour: false }, "hour");
    const nano = dearestNano(request, tokens, { prices: bookOf({ "up/m": plain }) });
    expect(nano).toBe(written * 1_000 + 1_000_000);
  });

  test("follows the dearest target that may serve it, fallbacks too, and those without a price not at all", () => {
    const fallback = modelOf({ alias: "other", targets: [targetOf("dear")] });
    const model = modelOf({ targets: [targetOf("up"), targetOf("free")], fallbacks: ["other"] });
    const call = callOf();
    const environment = { ...call.environment, models: new Map([["other", fallback]]) };
    const book = bookOf({ "up/m": plain, "dear/m": { input: 9_000_000, output: 9_000_000 } });
    const request = requestOf({ model, call: { ...call, environment } });
    expect(dearestNano(request, tokens, { prices: book })).toBe(9_000_000 + 1_800_000);
    const key = { ...plainKey(), allowedModels: [model.alias] };
    const caller = { ...callerOf(), key };
    const limited = requestOf({ model, call: { ...call, environment, caller } });
    expect(dearestNano(limited, tokens, { prices: book })).toBe(2_000_000);
  });

  test("is that of a long prompt by the estimate, and of the service tier that is asked for", () => {
    const rates = { input: 2_000_000, output: 10_000_000 };
    const tiers = { priority: { input: 3_000_000, output: 9_000_000 } };
    const book = bookOf({
      "up/m": { ...plain, long_prompt: { over_tokens: 999, ...rates }, tiers },
    });
    expect(dearestNano(requestOf(), tokens, { prices: book })).toBe(2_000_000 + 2_000_000);
    const asked = requestOf({ work: { inputs: 1, serviceTier: "priority" } });
    // The provider may serve it in the standard tier.
    expect(dearestNano(asked, tokens, { prices: book })).toBe(3_000_000 + 1_800_000);
    const unknown = requestOf({ work: { inputs: 1, serviceTier: "flex" } });
    expect(() => dearestNano(unknown, tokens, { prices: book })).toThrow(GatewayError);
    expect(missingAt(up, unknown, book)).toBe("no price of tiers.flex");
  });

  test("is no more input than the models read, each of its own window", () => {
    const book = bookOf({ "up/m": { input: 1_000_000, output: 0 } });
    const large = { inputTokens: 251_000, outputTokens: 0 };
    const model = modelOf({ contextWindow: 200_000 });
    const of = (inputs: number) =>
      dearestNano(requestOf({ model, work: { inputs } }), large, { prices: book });
    expect([of(1), of(2)]).toEqual([200_000_000, 251_000_000]);
    const fallback = modelOf({ alias: "other", contextWindow: 250_000 });
    const call = callOf();
    const environment = { ...call.environment, models: new Map([["other", fallback]]) };
    const request = requestOf({
      model: { ...model, fallbacks: ["other"] },
      call: { ...call, environment },
    });
    expect(dearestNano(request, large, { prices: book })).toBe(250_000_000);
  });

  test("counts images that have a price of their own", () => {
    const model = modelOf({ kind: "embedding" });
    const request = requestOf({ model, work: { inputs: 1, images: 3 } });
    const book = bookOf({ "up/m": { input: 0, image: 60 } });
    const input = { inputTokens: 10, outputTokens: 0 };
    expect(dearestNano(request, input, { prices: book })).toBe(3 * 60_000);
  });

  test("is nothing in the pool of the key's units, unless a price says otherwise", () => {
    const key = plainKey({ provisionedUnits: 1, provisionedPool: "own" });
    const call = { ...callOf(), caller: { ...callerOf(), key } };
    const model = modelOf({ targets: [targetOf("up", { pool: "own" })] });
    const request = requestOf({ call, model });
    const reserved = (price: Price) => {
      const book = bookOf({ "up/m": price });
      return dearestNano(request, tokens, { prices: book, ownPool: "own", isOfPool: true });
    };
    expect(reserved(plain)).toBe(0);
    const tiers = { provisioned: { input: 100_000, output: 0 } };
    expect(reserved({ ...plain, tiers })).toBe(100_000);
  });

  test("is at the price of its arrival", () => {
    const book = new PublishedPrices();
    const tableOf = (price: Price, version: number, validFrom: number) => {
      const target = { price, source: "test", confidence: "configured" } as const;
      return { version, validFrom, targets: { "up/m": target } };
    };
    const dear = { input: 9_000_000, output: 0 };
    book.publish([tableOf(plain, 1, 0), tableOf(dear, 2, 5_000)], 0);
    expect(dearestNano(requestOf({ arrivedAt: 4_999 }), tokens, { prices: book })).toBe(2_000_000);
    expect(dearestNano(requestOf({ arrivedAt: 5_000 }), tokens, { prices: book })).toBe(9_000_000);
  });
});

describe("a call under a budget uses no target at which its cost may not be known", () => {
  const { input, output, cache_read, cache_write, cache_write_1h } = plain;
  const whole = { input, output, cache_read, cache_write, cache_write_1h };
  const cases: readonly (readonly [
    missing: string,
    filled: PromptCache["filled"] | undefined,
    time: CacheTime,
    price: Price,
  ])[] = [
    ["input", undefined, undefined, { output }],
    ["output", undefined, undefined, { input }],
    ["cache_read", "by_provider", undefined, { input, output }],
    ["cache_read, cache_write", "always", undefined, { input, output }],
    ["cache_write", "as_asked", "minutes", { input, output, cache_read }],
    ["cache_write_1h", "as_asked", "hour", { input, output, cache_read, cache_write }],
    ["output", undefined, undefined, { ...whole, long_prompt: { over_tokens: 9, input } }],
  ];
  test.each(cases)("without a price of %s: %s, marked for %s", (missing, filled, time, price) => {
    const request = cachedRequest(filled && { filled, keepsAnHour: true }, time);
    const book = bookOf({ "up/m": price });
    const [target = targetOf("up")] = request.model.targets;
    expect(missingAt({ target, model: request.model }, request, book)).toBe(
      `no price of ${missing}`,
    );
    const refused = () => dearestNano(request, tokens, { prices: book });
    expect(refused).toThrow(`has no price of ${missing}, and a budget limits`);
    const zeros = { input: 0, cache_read: 0, cache_write: 0, cache_write_1h: 0, output: 0 };
    const free = bookOf({ "up/m": { ...zeros, ...price, long_prompt: undefined } });
    expect(missingAt({ target, model: request.model }, request, free)).toBeUndefined();
  });

  test("and the explanation names the upstream, whose models account holders do not see", () => {
    const request = cachedRequest({ filled: "by_provider", keepsAnHour: false }, undefined);
    let summary: string | undefined;
    try {
      dearestNano(request, tokens, { prices: bookOf({ "up/m": { input, output } }) });
    } catch (error) {
      summary = error instanceof GatewayError ? error.explanation?.summary : undefined;
    }
    expect(summary).toContain(
      "a price: no price of cache_read at up. Set it in `price` of the target",
    );
    expect(summary).not.toContain("up/m");
  });

  test.each([
    ["as_asked", undefined, { input, output }],
    ["by_provider", "hour", { input, output, cache_read }],
    ["as_asked", "minutes", { input, output, cache_read, cache_write }],
  ] as const)("what it cannot be billed needs no price: %s, %s", (filled, time, price) => {
    const request = cachedRequest({ filled, keepsAnHour: true }, time);
    const [target = targetOf("up")] = request.model.targets;
    expect(missingAt({ target, model: request.model }, request, bookOf({ "up/m": price }))).toBe(
      undefined,
    );
  });

  test("but the error may be retried while the prices of the target are not published", () => {
    const refused = () =>
      dearestNano(requestOf(), tokens, { prices: bookOf({ "other/m": plain }) });
    expect(refused).toThrow("are not known at the moment");
  });
});

test("a call is under the budgets of its model, in the periods of its arrival", () => {
  const limits = { placeOf: (scope: BudgetScope) => scope };
  const services = { calendar: new Calendar(), limits };
  const arrivedAt = Date.UTC(2026, 10, 30, 23, 30);
  const of = (...budgets: readonly Budget[]) => {
    const call = { ...callOf(), caller: { ...callerOf(), budgets } };
    const scopes = budgetsOf(requestOf({ call, arrivedAt }), services);
    return scopes?.map(({ budget, period }) => [budget.id, period.id]);
  };
  const { budget } = budgetOf(1);
  expect(of()).toBeUndefined();
  expect(of({ ...budget, model: "another" })).toBeUndefined();
  // One that was made after the call came.
  expect(of({ ...budget, period: "total", createdAt: arrivedAt + 1 })).toBeUndefined();
  expect(
    of(
      budget,
      { ...budget, id: "berlin", timeZone: "Europe/Berlin" },
      { ...budget, id: "model", model: "alpha-sonnet-4", period: "day" },
      { ...budget, id: "week", period: "week" },
    ),
  ).toEqual([
    ["budget", "2026-11"],
    ["berlin", "2026-12"],
    ["model", "2026-11-30"],
    ["week", "2026-W49"],
  ]);
});
