import { callDialects, type CallOutcome, type UsageRecord } from "../../src/domain/usage/usage.ts";
import type { CostStore } from "../../src/store/costs.ts";
import type { UsageStore } from "../../src/store/store.ts";
import type { UsageReports } from "../../src/store/usage-reports.ts";

/** Both sides of a ledger, over the same data. */
export interface Ledger {
  readonly store: UsageStore;
  readonly reports: UsageReports;
  readonly costs: CostStore;
}

export function recordOf(id: string, values: Partial<UsageRecord> = {}): UsageRecord {
  return {
    id,
    startedAt: 10_000,
    environment: "production",
    accountId: "acct_a",
    applicationId: "app_search",
    application: "search",
    keyId: "key_a",
    model: "alpha-sonnet-4",
    dialect: "chat",
    target: "bedrock-us/provider.model",
    capacityClass: "on-demand",
    inputTokens: 10,
    outputTokens: 20,
    cachedInputTokens: 3,
    usageSource: "upstream",
    outcome: "completed",
    status: 200,
    code: undefined,
    isStreamed: true,
    attempts: 1,
    firstEventMs: 12.5,
    durationMs: 99.25,
    ...values,
  };
}

export type Random = () => number;

/** The same numbers for the same seed: mulberry32. */
export function randomOf(seed: number): Random {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export function integerOf(random: Random, limit: number): number {
  return Math.floor(random() * limit);
}

export function pickOf<Item>(random: Random, items: readonly [Item, ...Item[]]): Item {
  return items[integerOf(random, items.length)] ?? items[0];
}

export const midnight = Date.UTC(2026, 2, 1);

const outcomes: readonly [CallOutcome, ...CallOutcome[]] = [
  "completed",
  "failed",
  "abandoned",
  "interrupted",
];

/** A call of a few accounts, keys and models, at any time of `days` from `midnight` on. */
export function randomRecord(random: Random, id: string, days: number): UsageRecord {
  const key = integerOf(random, 5);
  const account = key % 2;
  const outcome = random() < 0.7 ? "completed" : pickOf(random, outcomes);
  return recordOf(id, {
    startedAt: midnight + integerOf(random, days * 86_400_000),
    environment: key === 4 ? "staging" : "production",
    accountId: `acct_${account}`,
    applicationId: `app_${key % 3}_${account}`,
    keyId: `key_${key}`,
    model: pickOf(random, ["alpha-sonnet-4", "beta-3-70b", "embed-text-v2"]),
    dialect: pickOf(random, callDialects),
    target: pickOf(random, ["east/model", "west/model", ""]) || undefined,
    capacityClass: pickOf(random, ["provisioned", "spillover", "on-demand"]),
    inputTokens: integerOf(random, 5_000),
    outputTokens: integerOf(random, 900),
    cachedInputTokens: integerOf(random, 50),
    cacheWriteTokens: integerOf(random, 40) || undefined,
    ...(random() < 0.2 && { cacheWrite1hTokens: 1 + integerOf(random, 40) }),
    ...(random() < 0.1 && { images: 1 + integerOf(random, 3) }),
    ...(random() < 0.2 && { serviceTier: pickOf(random, ["priority", "flex"]) }),
    // Some have no price, and a cost may be more than 32 bits hold.
    ...(random() < 0.9 && { costNano: integerOf(random, 9_000_000_000), priceVersion: 3 }),
    usageSource: pickOf(random, ["upstream", "upstream", "counted", "estimated"]),
    outcome,
    ...(random() < 0.1 && { mayBeBilledTwice: true }),
    status: outcome === "completed" ? 200 : pickOf(random, [429, 499, 503]),
    code:
      outcome === "completed"
        ? undefined
        : pickOf(random, ["rate_limit_exceeded", "model_unavailable"]),
    firstEventMs: random() < 0.2 ? undefined : 10 ** (random() * 5 - 1),
    durationMs: 10 ** (random() * 6 - 1),
  });
}

export function randomRecords(random: Random, count: number, days: number): UsageRecord[] {
  return Array.from({ length: count }, (_, index) => randomRecord(random, `req_${index}`, days));
}

/** A time that no filter leaves anything out of. */
export const allTime = { since: 0, until: Date.UTC(2100, 0, 1) };

export async function listIds(reports: UsageReports): Promise<string[]> {
  const { items } = await reports.calls(allTime, { limit: 500 });
  return items.map(({ id }) => id);
}

/** Asks again until nothing is removed; what each time removed. */
export async function removeAll(remove: () => Promise<number>): Promise<number[]> {
  const removed: number[] = [];
  for (let count = await remove(); count > 0; count = await remove()) removed.push(count);
  return removed;
}
