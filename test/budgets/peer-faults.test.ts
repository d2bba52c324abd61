/** Faults of other gateways' budgets, each as a test; the numbers are of their issues. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  BudgetGateway,
  facts,
  hello,
  nanoOf,
  nanoPerToken,
  price,
  usdOf,
} from "../support/budget-gateway.ts";
import { ShiftedClock } from "../support/shifted-clock.ts";
import { until } from "../support/until.ts";

const free = "price: { input: 0, cache_read: 0, output: 0 }";
const models = `
  chat-model: { ${facts}, targets: [{ model: simulated-chat, upstream: simulator, ${price} }] }
  other-model: { ${facts}, targets: [{ model: simulated-other, upstream: simulator, ${price} }] }
  free-model: { ${facts}, targets: [{ model: simulated-free, upstream: simulator, ${free} }] }
  failing-model: { ${facts}, targets: [{ model: fault-error-500, upstream: simulator, ${price} }] }
  embedding-model: { kind: embedding, context_window: 8192, targets: [{ model: simulated-embedding, upstream: simulator, price: { input: 1000 } }] }`;

const requests: Readonly<Record<string, object>> = {
  "/v1/chat/completions": hello,
  "/chat/completions/": hello,
  "/v1/messages": hello,
  "/v1/responses": { model: "chat-model", input: "Hello", max_output_tokens: 40 },
  "/v1/embeddings": { model: "embedding-model", input: "Hello" },
};

describe("a spent budget of a key", () => {
  let gateway: BudgetGateway;
  let keyId = "";
  let budgetId = "";

  beforeAll(async () => {
    gateway = await BudgetGateway.start({ sections: { models } });
    keyId = (await gateway.key()).id;
    const budget = await gateway.create({
      key_id: keyId,
      limit_usd: "0.000000001",
      period: "month",
    });
    budgetId = budget.id;
    await gateway.everyProcessDecides();
  });
  afterAll(() => gateway[Symbol.asyncDispose]());

  // litellm#26672, #23714, #13882 and bifrost#2873: some routes did not ask.
  test.each(Object.entries(requests))(
    "refuses calls at %s, streamed or not",
    async (path, body) => {
      for (const stream of path.includes("embeddings") ? [false] : [false, true]) {
        const refused = await gateway.call({ ...body, stream }, path);
        expect(refused.status).toBe(429);
        expect(refused.text).toContain("budget of this API key");
      }
    },
  );

  // litellm#10973: models that cost nothing were blocked, too.
  test("leaves models that cost nothing, lists, counts and usage", async () => {
    expect((await gateway.call({ ...hello, model: "free-model" })).status).toBe(200);
    const count = await gateway.call(
      { ...hello, max_tokens: undefined },
      "/v1/messages/count_tokens",
    );
    expect(count.status).toBe(200);
    for (const path of ["/v1/models", "/v1/usage"]) {
      expect((await gateway.gateway.get(path)).status).toBe(200);
    }
  });

  // litellm#36926, #27639, PR#36592: reservations of refused or failed calls stayed.
  test("has nothing reserved after hundreds of refusals and failures", async () => {
    await gateway.json("PATCH", `/budgets/${budgetId}`, { revision: 1, limit_usd: "2" });
    const failing = { ...hello, model: "failing-model" };
    const large = { ...hello, max_tokens: 64_000 };
    for (let times = 0; times < 10; times += 1) {
      const all = await Promise.all(
        Array.from({ length: 20 }, (_, index) => gateway.call(index % 2 === 0 ? failing : large)),
      );
      expect(new Set(all.map(({ status }) => status))).toEqual(new Set([429, 503]));
    }
    await gateway.expectNothingReserved(budgetId);
  });

  // bifrost#5673: the limit was neither stored nor enforced; litellm#18554: a negative one was taken.
  test("is what was written, or is refused", async () => {
    expect((await gateway.budget(budgetId)).limit_usd).toBe("2.000000000");
    for (const limit_usd of ["-7", "0", "", "1e3", "9000000.01", "0.0000000001", 5, "NaN", null]) {
      const body = { key_id: keyId, limit_usd, period: "month" };
      const answer = await gateway.gateway.admin("POST", "/admin/v1/budgets", body);
      expect([limit_usd, answer.status]).toEqual([limit_usd, 400]);
    }
  });

  // litellm#22726: keys were refused when there was no budget any more.
  test("is no more once it is removed, and none of another key", async () => {
    const { text } = await gateway.gateway.createKey();
    const headers = { authorization: `Bearer ${text}` };
    expect((await gateway.call(hello, undefined, { headers })).status).toBe(200);
    await gateway.json("DELETE", `/budgets/${budgetId}`);
    expect((await gateway.call()).status).toBe(200);
    // What it tells is some seconds old.
    await until(async () => {
      const answer = await gateway.gateway.get("/v1/usage");
      return (await answer.text()).includes('"budgets":[]');
    });
  });
});

// litellm#31842: a budget for one model was stored and not enforced.
test("a budget for one model refuses calls for it alone", async () => {
  await using gateway = await BudgetGateway.start({ sections: { models } });
  const { id, account_id } = await gateway.key();
  for (const owner of [{ key_id: id }, { account_id }]) {
    const budget = await gateway.create({
      ...owner,
      limit_usd: "0.000000001",
      period: "day",
      model: "other-model",
    });
    await gateway.everyProcessDecides();
    expect((await gateway.call({ ...hello, model: "other-model" })).status).toBe(429);
    expect((await gateway.call()).status).toBe(200);
    await gateway.json("DELETE", `/budgets/${budget.id}`);
  }
});

// litellm#30002, PR#38686, #24675, #25495: what was spent stayed after the reset; bifrost PR#4820: requests
// and a timer reset differently; openusage#1109: what was spent ever was shown.
test("each kind of budget begins its next period with nothing spent, wherever one asks", async () => {
  const monday = Date.UTC(2026, 10, 30);
  const clock = new ShiftedClock(monday + 20 * 3_600_000);
  await using gateway = await BudgetGateway.start({
    processes: 1,
    clocks: [clock],
    sections: { models },
  });
  const { id, account_id, application_id } = await gateway.key();
  const owners = [{ account_id }, { application_id }, { key_id: id }];
  const periods = ["day", "month", "week"] as const;
  const budgets = await Promise.all(
    owners.flatMap((owner) =>
      periods.map((period) => gateway.create({ ...owner, period, limit_usd: "0.2" })),
    ),
  );
  await until(async () => (await gateway.call()).status === 429);
  const cost = await gateway.costOfRows();
  const shown = async () => {
    const usage = (await (await gateway.gateway.get("/v1/usage")).json()) as {
      budgets: readonly { id: string; spent_usd: string | null }[];
    };
    const told = new Map(usage.budgets.map((budget) => [budget.id, budget.spent_usd]));
    return Promise.all(
      budgets.map(async ({ id: of, period }) => {
        const spent = await gateway.spent(of);
        const own = told.get(of) ?? null;
        if (own !== null) expect(nanoOf(own)).toBe(spent);
        return `${period} ${spent}`;
      }),
    );
  };
  const spentOf = (ofEach: Readonly<Record<(typeof periods)[number], number>>) =>
    owners.flatMap(() => periods.map((period) => `${period} ${ofEach[period]}`));
  expect(await shown()).toEqual(spentOf({ day: cost, week: cost, month: cost }));
  // The first of December is a Tuesday.
  clock.set(monday + 86_400_000);
  expect(await shown()).toEqual(spentOf({ day: 0, week: cost, month: 0 }));
  expect((await gateway.call()).status).toBe(429);
  clock.set(monday + 7 * 86_400_000);
  expect(await shown()).toEqual(spentOf({ day: 0, week: 0, month: 0 }));
  expect((await gateway.call()).status).toBe(200);
}, 180_000);

// litellm#31934: the pace of a day was that of the month.
test("the time at which a budget runs out is within its own period", async () => {
  const noon = Date.UTC(2026, 10, 20, 12);
  const clock = new ShiftedClock(noon);
  await using gateway = await BudgetGateway.start({
    processes: 1,
    clocks: [clock],
    sections: { models },
  });
  const { id } = await gateway.key();
  for (let calls = 0; calls < 5; calls += 1) expect((await gateway.call()).status).toBe(200);
  const cost = await gateway.costOfRows();
  const paces = { day: 1.5, week: 1.5, month: 1.2 };
  for (const [period, times] of Object.entries(paces)) {
    const limit_usd = usdOf(Math.ceil(cost * times));
    const { state } = await gateway.create({ key_id: id, period, limit_usd, mode: "warn" });
    const [from, to] = [state.starts_at, state.runs_out_at ?? ""].map(Date.parse);
    expect((to ?? 0) - (from ?? 0)).toBeGreaterThan((noon - (from ?? 0)) * times * 0.999);
    expect(to).toBeLessThan(Date.parse(state.ends_at ?? ""));
  }
  const enough = await gateway.create({
    key_id: id,
    period: "day",
    limit_usd: "900",
    mode: "warn",
  });
  expect(enough.state.runs_out_at).toBeNull();
});

// litellm#20615: a wrong price locked everybody out until rows were removed by hand.
test("a wrong price that spent a budget is mended by pricing the calls again", async () => {
  await using gateway = await BudgetGateway.start({
    sections: { models: models.replaceAll("output: 1000 ", "output: 10000 ") },
  });
  const { id } = await gateway.key();
  const budget = await gateway.create({ key_id: id, limit_usd: "0.8", period: "month" });
  await until(async () => (await gateway.call()).status === 429);
  const wrong = await gateway.costOfRows();
  expect(wrong).toBeGreaterThan(0);
  await gateway.gateway.reconfigure({ models });
  await until(async () => {
    const prices = JSON.stringify(await gateway.json("GET", "/prices"));
    return !prices.includes('"10000"');
  });
  await gateway.json("POST", "/usage/reprice", { since: "1h" });
  expect(await gateway.spent(budget.id)).toBe(wrong / 10);
  await until(async () => (await gateway.call()).status === 200);
});

test("a repeat is answered from what is stored, though the budget is spent, and costs nothing", async () => {
  await using gateway = await BudgetGateway.start({
    sections: { models, plans: "{ enterprise: { custom: true, idempotency: true } }" },
  });
  const { id } = await gateway.key();
  const budget = await gateway.create({ key_id: id, limit_usd: "5", period: "month" });
  await gateway.everyProcessDecides();
  const init = { headers: { "idempotency-key": "once" } };
  const first = await gateway.call(hello, undefined, init);
  expect(first.status).toBe(200);
  const cost = await gateway.costOfRows();
  await gateway.json("PATCH", `/budgets/${budget.id}`, { revision: 1, limit_usd: usdOf(cost) });
  expect((await gateway.call()).status).toBe(429);
  const again = await Promise.all(
    Array.from({ length: 5 }, () => gateway.call(hello, undefined, init)),
  );
  expect(again.map(({ status, text }) => [status, text])).toEqual(
    again.map(() => [200, first.text]),
  );
  // A request that was refused is a new one when it comes again.
  const later = { headers: { "idempotency-key": "refused" } };
  expect((await gateway.call(hello, undefined, later)).status).toBe(429);
  await gateway.json("PATCH", `/budgets/${budget.id}`, { revision: 2, limit_usd: "5" });
  expect((await gateway.call(hello, undefined, later)).status).toBe(200);
  const after = await gateway.costOfRows();
  expect(await gateway.spent(budget.id)).toBe(after);
});

test("an attempt without an answer counts as well, and nothing is admitted after that", async () => {
  const silent = "model: fault-slow-first-byte-60005, upstream: simulator, priority: 1";
  const lost = `{ ${facts}, timeouts: { first_byte: 300ms }, targets: [{ ${silent}, ${price} }, { model: simulated-spare, upstream: simulator, priority: 2, ${price} }] }`;
  await using gateway = await BudgetGateway.start({
    sections: { models: `${models}\n  lost-model: ${lost}` },
  });
  const { id } = await gateway.key();
  const limit_usd = usdOf(hello.max_tokens * nanoPerToken);
  const budget = await gateway.create({ key_id: id, limit_usd, period: "month" });
  const body = { ...hello, model: "lost-model", stream: true };
  await until(async () => (await gateway.call(body)).status === 200);
  const [row] = await gateway.rows();
  expect(row).toMatchObject({ attempts: 2, status: 200 });
  const cost = await gateway.costOfRows();
  expect(cost).toBeGreaterThan(nanoOf(limit_usd));
  expect(await gateway.spent(budget.id)).toBe(cost);
  expect((await gateway.call({ ...hello, max_tokens: 1 })).status).toBe(429);
});
