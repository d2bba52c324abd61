/** What somebody might try, or do by accident, to spend more than a budget or to lose some of it. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { Random } from "../../simulator/answer/random.ts";
import {
  amountsOf,
  BudgetGateway,
  facts,
  hello,
  nanoOf,
  nanoPerToken,
  price,
  usdOf,
} from "../support/budget-gateway.ts";
import type { GatewayOptions } from "../support/gateway.ts";
import {
  postgresPrograms,
  type PostgresServer,
  startPostgres,
} from "../support/postgres-server.ts";
import { isComplete, testWhere } from "../support/requirement.ts";
import { until } from "../support/until.ts";
import { startValkey, valkeyProgram } from "../support/valkey-server.ts";

const reservedNano = hello.max_tokens * nanoPerToken;
const dear = "price: { input: 0, cache_read: 0, output: 5000 }";
const models = `
  chat-model: { ${facts}, targets: [{ model: simulated-chat, upstream: simulator, ${price} }] }
  dear-model: { ${facts}, targets: [{ model: simulated-dear, upstream: simulator, ${dear} }] }
  falling-model: { ${facts}, fallbacks: [dear-model], targets: [{ model: fault-error-500, upstream: simulator, ${price} }] }`;

/** Where the limits are, and the database. */
const installations = [
  ["memory", "SQLite", 1],
  ["Valkey", "PostgreSQL", 3],
  // Has nothing that one of the others lacks.
  ...(isComplete ? ([["Valkey", "SQLite", 3]] as const) : []),
] as const;

describe.each(installations)("with %s, %s and processes: %d", (store, database, processes) => {
  const lacks =
    (store === "Valkey" && valkeyProgram === null) ||
    (database === "PostgreSQL" && postgresPrograms === undefined);
  const testHere = testWhere(!lacks, `${store} or ${database} is not installed`);
  let postgres: PostgresServer | undefined;
  beforeAll(async () => {
    if (database === "PostgreSQL" && !lacks) postgres = await startPostgres();
  }, 180_000);
  afterAll(() => postgres?.[Symbol.asyncDispose]());

  async function start(options: GatewayOptions = {}) {
    const valkey = store === "Valkey" ? await startValkey() : undefined;
    const limits = valkey && `{ store: "${valkey.url}", timeout: 5s }`;
    const storage = postgres && `{ url: "${await postgres.createDatabase()}" }`;
    const gateway = await BudgetGateway.start({
      ...(processes > 1 && { processes }),
      ...options,
      sections: {
        models,
        ...(limits && { limits }),
        ...(storage && { storage }),
        ...options.sections,
      },
    });
    return {
      gateway,
      async [Symbol.asyncDispose]() {
        await gateway[Symbol.asyncDispose]();
        await valkey?.[Symbol.asyncDispose]();
      },
    };
  }

  testHere(
    "streams that are left at any moment cost what their rows say, and hold nothing",
    async () => {
      await using started = await start({ simulator: { tokensPerSecond: 200 } });
      const { gateway } = started;
      const { id } = await gateway.key();
      const budget = await gateway.create({
        key_id: id,
        limit_usd: usdOf(100 * reservedNano),
        period: "month",
      });
      await gateway.everyProcessDecides();
      const before = (await gateway.rows()).length;
      const random = new Random(34);
      await Promise.all(
        Array.from({ length: 60 }, async (_, index) => {
          const leaving = new AbortController();
          const body = {
            ...hello,
            stream: index % 3 !== 0,
            model: index % 4 === 1 ? "falling-model" : hello.model,
            max_tokens: 8,
          };
          const headers = index % 5 === 0 ? { "idempotency-key": `left ${index % 10}` } : {};
          const left = Bun.sleep(random.integer(0, 250)).then(() => leaving.abort());
          await gateway
            .call(body, undefined, { signal: leaving.signal, headers })
            .catch(() => undefined);
          await left;
        }),
      );
      await gateway.expectNothingReserved(budget.id);
      expect((await gateway.rows()).length).toBeGreaterThan(before);
    },
    30_000,
  );

  testHere(
    "a fallback that costs more is reserved from the start",
    async () => {
      await using started = await start({ simulator: { tokensPerSecond: 100 } });
      const { gateway } = started;
      const { id } = await gateway.key();
      const budget = await gateway.create({ key_id: id, limit_usd: "50", period: "month" });
      await gateway.leave(budget, 4 * 5 * reservedNano);
      const small = { ...hello, max_tokens: 40 };
      expect(await gateway.fitting(30, { ...small, model: "falling-model" })).toBe(4);
    },
    30_000,
  );

  testHere(
    "a budget that is made, raised and removed again and again while calls run counts each of them once",
    async () => {
      await using started = await start({ simulator: { tokensPerSecond: 400 } });
      const { gateway } = started;
      const { id, account_id } = await gateway.key();
      const whole = await gateway.create({ account_id, limit_usd: "5000", period: "month" });
      await gateway.everyProcessDecides();
      let isOver = false;
      const statuses = new Set<number>();
      const callers = Array.from({ length: 8 }, async () => {
        while (!isOver) statuses.add((await gateway.call({ ...hello, max_tokens: 8 })).status);
      });
      const limit_usd = usdOf(20 * 8 * nanoPerToken);
      for (let times = 0; times < 8; times += 1) {
        const made = await gateway.create({ key_id: id, limit_usd, period: "month" });
        await Bun.sleep(20);
        if (times % 2 === 0) {
          await gateway.json("PATCH", `/budgets/${made.id}`, { revision: 1, limit_usd: "900" });
          await Bun.sleep(20);
        }
        await gateway.json("DELETE", `/budgets/${made.id}`);
      }
      const last = await gateway.create({ key_id: id, limit_usd: "900", period: "month" });
      await Bun.sleep(50);
      isOver = true;
      await Promise.all(callers);
      expect([...statuses].filter((status) => ![200, 429, 503].includes(status))).toEqual([]);
      // Calls that ran when it was made reserved nothing of it: they count once they are told as stored.
      const stored = await gateway.costOfRows();
      await until(async () => {
        const all = await Promise.all(
          Array.from({ length: 9 }, () => gateway.call({ ...hello, n: 50, max_tokens: 64_000 })),
        );
        return all.every(({ text }) => amountsOf(text).spent === stored);
      });
      await gateway.json("PATCH", `/budgets/${last.id}`, { revision: 1, limit_usd: "30" });
      await gateway.expectNothingReserved(last.id);
      const cost = await gateway.costOfRows();
      expect(await gateway.spent(whole.id)).toBe(cost);
    },
    60_000,
  );

  testHere(
    "a key under twenty budgets is held by the smallest, and all of them count",
    async () => {
      await using started = await start({ simulator: { tokensPerSecond: 100 } });
      const { gateway } = started;
      const { id } = await gateway.key();
      const periods = ["day", "week", "month", "total"];
      const budgets = await Promise.all(
        Array.from({ length: 20 }, (_, index) =>
          gateway.create({
            key_id: id,
            limit_usd: String(40 + index),
            period: periods[index % 4],
            ...(index % 5 === 0 && index > 0 && { model: "chat-model" }),
          }),
        ),
      );
      const refused = await gateway.gateway.admin("POST", "/admin/v1/budgets", {
        key_id: id,
        limit_usd: "1",
        period: "day",
      });
      expect(refused.status).toBe(409);
      const [first] = budgets;
      if (first === undefined) throw new Error("there are budgets");
      await gateway.leave(first, 7 * reservedNano);
      expect(await gateway.fitting(40)).toBe(7);
      const cost = await gateway.costOfRows();
      for (const budget of budgets) expect(await gateway.spent(budget.id)).toBe(cost);
    },
    60_000,
  );

  testHere(
    "the first calls after a budget was set are held by it, whichever process they come to",
    async () => {
      await using started = await start({ simulator: { tokensPerSecond: 100 } });
      const { gateway } = started;
      const { id } = await gateway.key();
      for (let times = 1; times <= 5; times += 1) {
        const spent = await gateway.costOfRows();
        const limit_usd = usdOf(spent + 3 * reservedNano);
        const { id: budget } = await gateway.create({ key_id: id, limit_usd, period: "month" });
        const all = await Promise.all(Array.from({ length: 30 }, () => gateway.call()));
        const served = all.filter(({ status }) => status === 200).length;
        const others = new Set(all.map(({ status }) => status));
        expect([...others].filter((status) => ![200, 429, 503].includes(status))).toEqual([]);
        expect(served).toBeLessThanOrEqual(3);
        const cost = await gateway.costOfRows();
        expect(await gateway.spent(budget)).toBe(cost);
        await gateway.json("DELETE", `/budgets/${budget}`);
      }
    },
    60_000,
  );

  testHere(
    "both secrets of a key that is rotated share its budget, and so do those after it",
    async () => {
      await using started = await start({ simulator: { tokensPerSecond: 100 } });
      const { gateway } = started;
      const { id } = await gateway.key();
      const budget = await gateway.create({ key_id: id, limit_usd: "50", period: "month" });
      await gateway.leave(budget, 9 * reservedNano);
      const secrets = [gateway.gateway.key];
      for (let times = 0; times < 2; times += 1) {
        const rotated = await gateway.json("POST", `/keys/${id}/rotate`, {});
        secrets.push((rotated as { api_key: string }).api_key);
      }
      const all = await Promise.all(
        Array.from({ length: 45 }, async (_, index) => {
          const headers = { authorization: `Bearer ${secrets[index % secrets.length]}` };
          return (await gateway.call(hello, undefined, { headers })).status;
        }),
      );
      expect(all.filter((status) => status === 200)).toHaveLength(9);
    },
    60_000,
  );

  testHere(
    "prices that change while calls run leave what is spent the sum of the rows, within the limit",
    async () => {
      await using started = await start({ simulator: { tokensPerSecond: 400 } });
      const { gateway } = started;
      const { id } = await gateway.key();
      const budget = await gateway.create({ key_id: id, limit_usd: "2.5", period: "month" });
      await gateway.everyProcessDecides();
      let isOver = false;
      const callers = Array.from({ length: 6 }, async () => {
        while (!isOver) {
          const { status } = await gateway.call();
          expect([200, 429]).toContain(status);
          if (status === 429) await Bun.sleep(50);
        }
      });
      for (const output of [3_000, 200, 5_000, 1]) {
        await Bun.sleep(250);
        await gateway.gateway.reconfigure({
          models: models.replaceAll("output: 1000", `output: ${output}`),
        });
      }
      await Bun.sleep(1_200);
      isOver = true;
      await Promise.all(callers);
      const rows = await gateway.rows();
      expect(new Set(rows.map(({ priceVersion }) => priceVersion)).size).toBeGreaterThan(2);
      const cost = await gateway.costOfRows();
      expect(await gateway.spent(budget.id)).toBe(cost);
      expect(cost).toBeLessThanOrEqual(nanoOf(budget.limit_usd));
    },
    60_000,
  );

  testHere(
    "what keys have spent that are gone still counts for their application and account",
    async () => {
      await using started = await start();
      const { gateway } = started;
      const { id, account_id, application_id } = await gateway.key();
      const { id: lateId, text } = await gateway.gateway.createKey({ application: "late" });
      const { application_id: late } = (await gateway.json("GET", `/keys/${lateId}`)) as {
        application_id: string;
      };
      const ofAccount = await gateway.create({ account_id, limit_usd: "1", period: "month" });
      const others = [
        await gateway.create({ application_id, limit_usd: "1", period: "day" }),
        await gateway.create({ key_id: id, limit_usd: "1", period: "month" }),
      ];
      const ofLate = await gateway.create({ application_id: late, limit_usd: "1", period: "week" });
      await gateway.everyProcessDecides();
      const headers = { authorization: `Bearer ${text}` };
      await until(async () => (await gateway.call(hello, undefined, { headers })).status === 200);
      const streams = await Promise.all(
        Array.from({ length: 6 }, async (_, index) => {
          const body = { ...hello, stream: true };
          const init = index % 2 === 0 ? {} : { headers };
          const answer = await gateway.gateway.post("/v1/chat/completions", body, init);
          return { answer, reader: answer.body?.getReader() };
        }),
      );
      await Promise.all(streams.map(async ({ reader }) => reader?.read()));
      await gateway.json("DELETE", `/keys/${lateId}`);
      await gateway.json("DELETE", `/applications/${late}`);
      await gateway.json("DELETE", `/keys/${id}`);
      const streamedRows = async () =>
        (await gateway.rows()).filter(({ isStreamed }) => isStreamed);
      await until(async () => (await streamedRows()).length === streams.length);
      const rows = await gateway.rows();
      const costOf = (of: typeof rows) => of.reduce((sum, { costNano = 0 }) => sum + costNano, 0);
      expect(await gateway.spent(ofAccount.id)).toBe(costOf(rows));
      const own = costOf(rows.filter((row) => row.applicationId === application_id));
      for (const budget of others) expect(await gateway.spent(budget.id)).toBe(own);
      const gone = await gateway.gateway.admin("GET", `/admin/v1/budgets/${ofLate.id}`);
      expect(gone.status).toBe(404);
    },
    60_000,
  );

  testHere(
    "a plan whose limits refuse nothing leaves budgets as they are",
    async () => {
      const plans = "{ tried: { requests_per_minute: 3, tokens_per_minute: 100, mode: audit } }";
      await using started = await start({
        key: { plan: "tried" },
        sections: { plans },
        simulator: { tokensPerSecond: 100 },
      });
      const { gateway } = started;
      const { id } = await gateway.key();
      const budget = await gateway.create({ key_id: id, limit_usd: "50", period: "month" });
      await gateway.leave(budget, 9 * reservedNano);
      expect(await gateway.fitting(40)).toBe(9);
      const cost = await gateway.costOfRows();
      expect(await gateway.spent(budget.id)).toBe(cost);
      expect((await gateway.call()).status).toBe(429);
    },
    60_000,
  );

  testHere(
    "callers that leave a queue, or wait too long in it, leave nothing reserved",
    async () => {
      await using started = await start({ simulator: { tokensPerSecond: 40 } });
      const { gateway } = started;
      const { id } = await gateway.key();
      const budget = await gateway.create({ key_id: id, limit_usd: "4", period: "month" });
      await gateway.everyProcessDecides();
      const { simulator } = gateway.gateway;
      await gateway.gateway.reconfigure({
        models,
        upstreams: `{ simulator: { kind: openai, base_url: "${simulator.url}", max_in_flight: 4 } }`,
        plans: "{ enterprise: { custom: true, queue_timeout: 400ms } }",
      });
      const random = new Random(35);
      const all = await Promise.all(
        Array.from({ length: 60 }, async (_, index) => {
          const body = { ...hello, max_tokens: 8, stream: index % 2 === 0 };
          const signal = AbortSignal.timeout(index % 3 === 0 ? random.integer(20, 500) : 20_000);
          const headers = index % 4 === 0 ? { "x-sluice-timeout-ms": "150" } : {};
          const made = await gateway
            .call(body, undefined, { signal, headers })
            .catch(() => undefined);
          return made?.status ?? 0;
        }),
      );
      expect(new Set(all).size).toBeGreaterThan(2);
      await gateway.expectNothingReserved(budget.id);
    },
    60_000,
  );
});
