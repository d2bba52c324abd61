import { expect, test } from "bun:test";
import { budgetOf } from "../../test/contracts/limit-budget-contract.ts";
import { ManualClock } from "../../test/support/manual-clock.ts";
import {
  callerOf,
  callOf,
  modelOf,
  pipelineOf,
  plainWork,
  snapshotOf,
  targetOf,
} from "../../test/support/pipeline-fixtures.ts";
import { plainKey } from "../../test/support/plain-key.ts";
import { candidatesOf } from "../call/attempts/call-candidates.ts";
import { Calendar } from "../domain/money/calendar.ts";
import { type Price, type PriceBook, PublishedPrices } from "../domain/money/price.ts";
import { MemoryLimitStore } from "../store/limits/memory/limit-store.ts";
import { type AdmissionRequest, admit } from "./admit.ts";
import { dearestNano } from "./reserve-money.ts";

const price: Price = {
  input: 1_000_000,
  output: 1_000_000,
  tiers: { priority: { input: 2_000_000, output: 2_000_000 } },
};
const prices: PriceBook = { isPublished: () => true, find: () => ({ price, version: 1 }) };
/** Of 10 tokens in and 10 out. */
const costNano = 20_000;

/** Admits a call of a key with units whose model has a target in their pool and one outside it. */
async function admitWithUnits(
  limitNano: number,
  { book = prices, units = 3, isComplete = true } = {},
) {
  const clock = new ManualClock({ wallMs: Date.UTC(2026, 10, 10), monotonicMs: 70_000 });
  const limits = new MemoryLimitStore({ clock, random: () => 0 });
  const { process } = limits;
  limits.updateSpend({
    epoch: 1,
    isWhole: true,
    isComplete,
    processes: [process],
    silent: [],
    spend: [],
  });
  const pool = {
    name: "shared",
    kind: "shared" as const,
    tokensPerMinute: 10_000,
    maxInFlight: undefined,
    onDemandFloorPercent: 20,
    unitTokensPerMinute: 100,
  };
  const key = plainKey({ provisionedUnits: units, provisionedPool: pool.name });
  const { budget } = budgetOf(limitNano);
  const caller = { ...callerOf({ requestsPerMinute: 9, tokensPerMinute: 900 }), key };
  const request: AdmissionRequest = {
    call: callOf({
      caller: { ...caller, budgets: [budget] },
      snapshot: { ...snapshotOf(["up"]), pools: new Map([[pool.name, pool]]) },
    }),
    model: modelOf({
      contextWindow: 200,
      targets: [targetOf("up"), targetOf("up", { pool: pool.name })],
    }),
    estimate: { inputTokens: 10, outputTokens: 10 },
    output: { cap: 10, choices: 1 },
    ...plainWork,
    arrivedAt: clock.now(),
  };
  const admission = await admit(request, {
    limits,
    clock,
    prices: book,
    calendar: new Calendar(),
  });
  const { services } = pipelineOf({ clock });
  const work = { check: () => undefined };
  const search = { call: request.call, admission, work, services: { ...services, prices: book } };
  return { admission, ...candidatesOf(search) };
}

test("a call within its guarantee reserves what it may cost elsewhere, and then may go there", async () => {
  const { admission, candidates } = await admitWithUnits(costNano);
  expect(admission).toMatchObject({
    capacityClass: "provisioned",
    budgeted: { reservedNano: costNano, isOfPool: false },
  });
  expect(candidates.map(({ target }) => target.pool)).toEqual(["shared", undefined]);
});

test("what the units pay is not refused by a budget, and stays in their pool", async () => {
  const { admission, candidates, leftOut } = await admitWithUnits(costNano - 1);
  expect(admission).toMatchObject({
    capacityClass: "provisioned",
    budgeted: { reservedNano: 0, isOfPool: true },
  });
  expect(candidates.map(({ target }) => target.pool)).toEqual(["shared"]);
  expect(leftOut.map(({ why }) => why)).toEqual(["a budget has no room for it"]);
});

test("what the units pay is not refused either while nobody knows what is left of the budget", async () => {
  const { admission, candidates } = await admitWithUnits(costNano, { isComplete: false });
  expect(admission).toMatchObject({ budgeted: { reservedNano: 0, isOfPool: true } });
  expect(candidates.map(({ target }) => target.pool)).toEqual(["shared"]);
});

test("while no prices are known, a call under a budget may be retried", async () => {
  const admitted = admitWithUnits(costNano, { book: new PublishedPrices(), units: 0 });
  const explanation = { rule: "budgets_unavailable" };
  const headers = { "retry-after": "1" };
  const expected = { code: "model_unavailable", explanation, headers };
  expect(await admitted.catch((error: unknown) => error)).toMatchObject(expected);
});

test.each([
  ["auto", 20],
  ["standard_only", 20],
  ["on_demand", 20],
  ["priority", 40],
  // OpenAI's other name.
  ["fast", 40],
])(
  "a call that asks for the tier %s reserves the dearest tier that may serve it",
  (serviceTier, nano) => {
    const work = { inputs: 1, serviceTier };
    const request = { call: callOf(), model: modelOf(), ...plainWork, work };
    const tokens = { inputTokens: 10, outputTokens: 10 };
    expect(dearestNano(request, tokens, { prices })).toBe(nano * 1_000);
  },
);
