import { budgetedOf, budgetsOf, dearestNano } from "../../src/admission/reserve-money.ts";
import { systemClock } from "../../src/domain/clock.ts";
import { minuteScopes } from "../../src/domain/limits/limit-scope.ts";
import type { Model } from "../../src/domain/model.ts";
import type { Budget } from "../../src/domain/money/budget.ts";
import { Calendar } from "../../src/domain/money/calendar.ts";
import { costOf } from "../../src/domain/money/cost.ts";
import { PublishedPrices } from "../../src/domain/money/price.ts";
import { MemoryLimitStore } from "../../src/store/limits/memory/limit-store.ts";
import type { Figure } from "../figure.ts";
import { summarize } from "../statistics.ts";
import { targets } from "../targets.ts";
import type { OwnContext } from "./context.ts";

const rounds = 9;
const price = { input: 3_000_000, cache_read: 300_000, cache_write: 3_750_000, output: 15_000_000 };
const model: Model = {
  alias: "alpha",
  kind: "chat",
  created: 0,
  contextWindow: 200_000,
  maxOutputTokens: 8_192,
  fanOut: 1,
  targets: [{ id: "up/alpha", upstream: "up", model: "alpha", priority: 1, weight: 1 }],
};
const budget: Budget = {
  id: "bud_1",
  accountId: "acct_1",
  applicationId: undefined,
  keyId: "key_1",
  model: undefined,
  period: "month",
  timeZone: "Europe/Berlin",
  mode: "refuse",
  limitNano: 9_000_000_000_000_000,
  setBy: "operator",
  createdAt: 0,
};
const limits = { requestsPerMinute: 1e9, tokensPerMinute: 1e12 };
const environment = { models: new Map<string, Model>() };
const key = { id: "key_1", provisionedPool: undefined, allowedModels: undefined };
const estimate = { inputTokens: 900, outputTokens: 300 };
const used = { inputTokens: 850, cachedInputTokens: 0, outputTokens: 210 };

/** What prices and one budget cost a call in a process that keeps its limits in memory. */
export async function measureMoney({ plan, progress }: OwnContext): Promise<readonly Figure[]> {
  progress("money: calls with and without a budget");
  const added: number[] = [];
  let without = 0;
  // The first ones compile the code.
  for (let round = -2; round < rounds; round += 1) {
    const plain = microsecondsOf(plan.warmUpCalls, undefined);
    const difference = microsecondsOf(plan.warmUpCalls, [budget]) - plain;
    if (round < 0) continue;
    added.push(difference);
    without = plain;
    await Bun.sleep(0);
  }
  const value = summarize(added);
  return [
    {
      name: "money.call",
      title: "Prices and one budget, added to a call's admission and end",
      unit: "us",
      direct: without,
      sluice: without + value.median,
      comparison: { kind: "added", value },
      target: targets.moneyUs,
    },
  ];
}

/** Of the admission and the end of a call. */
function microsecondsOf(calls: number, budgets: readonly Budget[] | undefined): number {
  const store = new MemoryLimitStore({ clock: systemClock, random: Math.random });
  const note = { epoch: 1, isWhole: true, spend: [], isComplete: true, processes: [], silent: [] };
  store.updateSpend(note);
  const prices = new PublishedPrices();
  const targetPrice = { price, source: "bench", confidence: "configured" } as const;
  const tables = [{ version: 1, validFrom: 0, targets: { "up/alpha": targetPrice } }];
  if (budgets !== undefined) prices.publish(tables, 0);
  const services = { prices, calendar: new Calendar(), limits: store };
  const scopes = minuteScopes("key:key_1", limits, { owner: "acct_1" });
  const caller = { key, ...(budgets !== undefined && { budgets }) };
  const size = { textBytes: 3_000, attachmentTokens: 0 };
  const work = { inputs: 1 };
  const tokens = estimate.inputTokens + estimate.outputTokens;
  const before = process.cpuUsage();
  for (let index = 0; index < calls; index += 1) {
    const callId = `req_${index}`;
    const arrivedAt = systemClock.now();
    const request = { call: { caller, environment }, model, arrivedAt, size, work };
    const under = budgetsOf(request, services);
    const reserveNano = under && dearestNano(request, estimate, { prices });
    store.acquire({ callId, scopes, tokens, budgets: under, reserveNano });
    budgetedOf(request, { budgets: under, reserveNano }, store);
    const found = prices.find("up/alpha", arrivedAt);
    store.settle(callId, 1_060, found && costOf(used, found.price, undefined));
  }
  const { user, system } = process.cpuUsage(before);
  return (user + system) / calls;
}
