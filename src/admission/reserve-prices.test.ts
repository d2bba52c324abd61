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
import type { Budget } from "../domain/money/budget.ts";
import { Calendar } from "../domain/money/calendar.ts";
import { type Price, PublishedPrices } from "../domain/money/price.ts";
import {
  budgetsOf,
  dearestNano,
  isPriced,
  type MoneyRequest,
  provisionedNano,
} from "./reserve-money.ts";

const plain: Price = {
  input: 1_000_000,
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

describe("what a call reserves", () => {
  test("is its input at the rate of a write to the cache, which a provider may make unasked, and its output", () => {
    expect(dearestNano(requestOf(), tokens, { prices: bookOf({ "up/m": plain }) })).toBe(
      1_250_000 + 1_000_000,
    );
    const { input, output } = plain;
    const book = bookOf({ "up/m": { input, output } });
    expect(dearestNano(requestOf(), tokens, { prices: book })).toBe(1_000_000 + 1_000_000);
  });

  test("is dearer when a part of the prompt is to be kept for an hour", () => {
    const work = { inputs: 1, isKeptAnHour: () => true };
    const book = bookOf({ "up/m": plain });
    expect(dearestNano(requestOf({ work }), tokens, { prices: book })).toBe(2_000_000 + 1_000_000);
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
    expect(dearestNano(limited, tokens, { prices: book })).toBe(2_250_000);
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
    expect(isPriced("up/m", { arrivedAt: 1, serviceTier: "flex" }, book)).toBe(false);
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
    const request = requestOf({
      work: { inputs: 1, images: 3 },
    });
    const book = bookOf({ "up/m": { input: 0, image: 60 } });
    const input = { inputTokens: 10, outputTokens: 0 };
    expect(dearestNano(request, input, { prices: book })).toBe(3 * 60_000);
  });

  test("is nothing in the pool of the key's units, unless a price says otherwise", () => {
    const key = plainKey({ provisionedUnits: 1, provisionedPool: "own" });
    const call = { ...callOf(), caller: { ...callerOf(), key } };
    const model = modelOf({ targets: [targetOf("up", { pool: "own" })] });
    const request = requestOf({ call, model });
    expect(provisionedNano(request, tokens, bookOf({ "up/m": plain }))).toBe(0);
    const tiers = { provisioned: { input: 100_000, output: 0 } };
    expect(provisionedNano(request, tokens, bookOf({ "up/m": { ...plain, tiers } }))).toBe(100_000);
  });

  test("is at the price of its arrival", () => {
    const book = new PublishedPrices();
    const tableOf = (price: Price, version: number, validFrom: number) => {
      const target = { price, source: "test", confidence: "configured" } as const;
      return { version, validFrom, targets: { "up/m": target } };
    };
    const dear = { input: 9_000_000, output: 0 };
    book.publish([tableOf(plain, 1, 0), tableOf(dear, 2, 5_000)], 0);
    expect(dearestNano(requestOf({ arrivedAt: 4_999 }), tokens, { prices: book })).toBe(2_250_000);
    expect(dearestNano(requestOf({ arrivedAt: 5_000 }), tokens, { prices: book })).toBe(9_000_000);
  });
});

test("a call is under the budgets of its model, in the periods of its arrival", () => {
  const services = { prices: bookOf({}), calendar: new Calendar() };
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
