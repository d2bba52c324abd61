/** Periods of budgets when clocks are wrong, differ or are set, and in zones with odd changes. */
import { describe, expect, test } from "bun:test";
import { Calendar } from "../../src/domain/money/calendar.ts";
import { createApp } from "../support/app.ts";
import {
  amountsOf,
  BudgetGateway,
  hello,
  nanoOf,
  nanoPerToken,
  usdOf,
} from "../support/budget-gateway.ts";
import { ShiftedClock } from "../support/shifted-clock.ts";
import { until } from "../support/until.ts";
import { testWhere } from "../support/requirement.ts";
import { startValkey, valkeyProgram } from "../support/valkey-server.ts";

const reservedNano = hello.max_tokens * nanoPerToken;
const dayMs = 86_400_000;
const calendar = new Calendar();

/** What the rows of each period cost. */
async function costByPeriod(
  gateway: BudgetGateway,
  rule: Parameters<Calendar["periodAt"]>[0],
): Promise<ReadonlyMap<string, number>> {
  const sums = new Map<string, number>();
  for (const { startedAt, costNano = 0 } of await gateway.rows()) {
    const { id } = calendar.periodAt(rule, startedAt);
    sums.set(id, (sums.get(id) ?? 0) + costNano);
  }
  return sums;
}

describe.each([
  ["memory", [0]],
  ["Valkey", [0, 90_000, -90_000]],
] as const)("with limits in %s and clocks that differ by %j", (store, skews) => {
  const isThere = store !== "Valkey" || valkeyProgram !== null;
  const testHere = testWhere(isThere, `${store} is not installed`);

  testHere(
    "each period has at most the limit, though clocks go over its end and back",
    async () => {
      const midnight = Date.UTC(2026, 10, 21);
      const clocks = skews.map((skew) => new ShiftedClock(midnight - dayMs / 2, skew));
      await using valkey = store === "Valkey" ? await startValkey() : undefined;
      await using gateway = await BudgetGateway.start({
        simulator: { tokensPerSecond: 400 },
        processes: skews.length,
        clocks,
        ...(valkey && { sections: { limits: `{ store: "${valkey.url}", timeout: 5s }` } }),
      });
      const { id } = await gateway.key();
      const limit_usd = usdOf(20 * reservedNano);
      const budget = await gateway.create({ key_id: id, limit_usd, period: "day" });
      await gateway.everyProcessDecides();
      const offsets = [
        -dayMs / 4,
        -60_000,
        60_000,
        -30_000,
        3_600_000,
        -dayMs / 4,
        dayMs,
        -1,
        0,
        2 * dayMs,
        4 * dayMs,
        -3_600_000,
      ];
      for (const offset of offsets) {
        for (const clock of clocks) clock.set(midnight + offset);
        const all = await Promise.all(Array.from({ length: 24 }, () => gateway.call()));
        const statuses = new Set(all.map(({ status }) => status));
        expect([...statuses].filter((status) => ![200, 429, 503].includes(status))).toEqual([]);
      }
      const rule = { period: "day", timeZone: "UTC", createdAt: 0 } as const;
      const sums = await costByPeriod(gateway, rule);
      expect(sums.size).toBeGreaterThan(2);
      for (const sum of sums.values()) expect(sum).toBeLessThanOrEqual(nanoOf(limit_usd));
      expect(sums.get("2026-11-20") ?? 0).toBeGreaterThan(nanoOf(limit_usd) - reservedNano);
      for (const [period, sum] of sums) {
        for (const clock of clocks) clock.set(Date.parse(period) + dayMs / 2);
        const { state } = await gateway.budget(budget.id);
        expect([state.period_id, nanoOf(state.spent_usd)]).toEqual([period, sum]);
      }
    },
    60_000,
  );
});

test("a clock that was days ahead at the start, and is set back, finds what was spent", async () => {
  const noon = Date.UTC(2026, 10, 20, 12);
  const clock = new ShiftedClock(noon);
  await using gateway = await BudgetGateway.start({ processes: 1, clocks: [clock] });
  const { id } = await gateway.key();
  await gateway.create({ key_id: id, limit_usd: usdOf(5 * reservedNano), period: "day" });
  await until(async () => (await gateway.call()).status === 429);
  const cost = await gateway.costOfRows();
  await gateway.gateway.app[Symbol.asyncDispose]();
  clock.set(noon + 5 * dayMs);
  await using app = await createApp(gateway.gateway.config, { clock });
  const tooMuch = async (): Promise<string> => {
    const answer = await fetch(`${app.dataUrl}/v1/chat/completions`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${gateway.gateway.key}`,
        "content-type": "application/json",
      },
      body: JSON.stringify({ ...hello, max_tokens: 64_000 }),
    });
    return answer.text();
  };
  await until(async () => (await tooMuch()).includes("Spent 0.00,"));
  clock.set(noon);
  await until(async () => amountsOf(await tooMuch()).spent === cost);
}, 180_000);

/** The first moments of these dates, where clocks are set by half an hour, at odd offsets, or at midnight. */
const oddDays = [
  ["Australia/Lord_Howe", "2026-10-04", "2026-10-03T13:30:00Z", "2026-10-04T13:00:00Z"],
  ["Australia/Lord_Howe", "2027-04-04", "2027-04-03T13:00:00Z", "2027-04-04T13:30:00Z"],
  ["Pacific/Chatham", "2026-09-27", "2026-09-26T11:15:00Z", "2026-09-27T10:15:00Z"],
  ["Asia/Kathmandu", "2026-11-20", "2026-11-19T18:15:00Z", "2026-11-20T18:15:00Z"],
  ["America/Santiago", "2026-09-06", "2026-09-06T04:00:00Z", "2026-09-07T03:00:00Z"],
  ["Africa/Cairo", "2026-10-29", "2026-10-28T21:00:00Z", "2026-10-29T22:00:00Z"],
] as const;

test("a day lasts as long as its zone says, and a budget keeps its zone", async () => {
  const clock = new ShiftedClock(Date.UTC(2026, 8, 1));
  await using gateway = await BudgetGateway.start({ processes: 1, clocks: [clock] });
  const { account_id } = await gateway.key();
  for (const [time_zone, date, starts, ends] of oddDays) {
    clock.set(Date.parse(starts) + 1_000);
    const { revision } = (await gateway.json("GET", `/accounts/${account_id}`)) as {
      revision: number;
    };
    await gateway.json("PATCH", `/accounts/${account_id}`, { revision, time_zone });
    const { id, text } = await gateway.gateway.createKey();
    const headers = { authorization: `Bearer ${text}` };
    const limit_usd = usdOf(reservedNano);
    const budget = await gateway.create({ key_id: id, limit_usd, period: "day" });
    expect(budget).toMatchObject({
      time_zone,
      state: { period_id: date, starts_at: iso(starts), ends_at: iso(ends) },
    });
    const statusAt = async (at: number): Promise<number> => {
      clock.set(at);
      return (await gateway.call(hello, undefined, { headers })).status;
    };
    await until(async () => (await statusAt(Date.parse(starts) + 1_000)) === 200);
    expect(await statusAt(Date.parse(ends) - 10_000)).toBe(429);
    expect(await statusAt(Date.parse(ends))).toBe(200);
    expect(await statusAt(Date.parse(starts) - 10_000)).toBe(200);
    await gateway.json("DELETE", `/budgets/${budget.id}`);
  }
}, 180_000);

function iso(time: string): string {
  return new Date(time).toISOString();
}
