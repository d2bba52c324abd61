import { describe, expect, test } from "bun:test";
import OpenAI from "openai";
import { z } from "zod";
import { budgetSchema, listOf } from "../../src/control/contract.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { until } from "../support/until.ts";
import { describeWithValkey, startValkey } from "../support/valkey-server.ts";

const nano = 1_000_000_000;
/** USD per million tokens of output, so that a call reserves little but its output. */
const price = "price: { input: 0, cache_read: 0, output: 1000 }";
const facts = "kind: chat, context_window: 200000, max_output_tokens: 64000";
const models = `
  chat-model: { ${facts}, targets: [{ model: simulated-chat, upstream: simulator, ${price} }] }
  failing-model: { ${facts}, targets: [{ model: fault-error-500, upstream: simulator, ${price} }] }
  stalling-model: { ${facts}, targets: [{ model: fault-stall-mid, upstream: simulator, ${price} }] }
  unpriced-model: { ${facts}, targets: [{ model: fault-echo, upstream: simulator }] }
  cache-model:
    ${facts.replaceAll(", ", "\n    ")}
    targets:
      - { model: simulated-cache, upstream: simulator, price: { input: 0, output: 1000 } }
  half-priced-model:
    ${facts.replaceAll(", ", "\n    ")}
    targets:
      - { model: fault-echo, upstream: simulator, priority: 1 }
      - { model: simulated-chat, upstream: simulator, ${price}, priority: 2 }
  embedding-model:
    kind: embedding
    context_window: 8192
    targets: [{ model: simulated-embedding, upstream: simulator, price: { input: 1000 } }]`;
const cap = 40;
/** Of a call with that cap. */
const reservedUsd = (cap * 1_000) / 1_000_000;
const hello = {
  model: "chat-model",
  max_tokens: cap,
  messages: [{ role: "user" as const, content: "Hello" }],
};

async function create(gateway: TestGateway, body: object) {
  const answer = await gateway.admin("POST", "/admin/v1/budgets", body);
  return budgetSchema.parse(await answer.json());
}

async function keyOf(gateway: TestGateway) {
  const answer = await gateway.admin("GET", "/admin/v1/keys");
  const keys = z.object({ data: z.array(z.object({ id: z.string(), account_id: z.string() })) });
  const [key] = keys.parse(await answer.json()).data;
  if (key === undefined) throw new Error("there is no key");
  return key;
}

async function statusOf(gateway: TestGateway, body: object = hello): Promise<number> {
  const answer = await gateway.post("/v1/chat/completions", body);
  await answer.text();
  return answer.status;
}

/** What the stored rows cost. */
async function costOfRows(gateway: TestGateway): Promise<number> {
  const rows = await gateway.usage();
  return rows.reduce((sum, { costNano = 0 }) => sum + costNano, 0);
}

/** The budget lets through as many calls at once as fit into what is left of it. */
async function fitting(gateway: TestGateway, wanted: number): Promise<number> {
  const statuses = await Promise.all(Array.from({ length: wanted }, () => statusOf(gateway)));
  for (const status of statuses) expect([200, 429]).toContain(status);
  return statuses.filter((status) => status === 200).length;
}

/** Each process is asked several times. */
async function everyProcessDecides(gateway: TestGateway): Promise<void> {
  await until(async () => {
    const small = { ...hello, max_tokens: 1 };
    const statuses = await Promise.all(Array.from({ length: 9 }, () => statusOf(gateway, small)));
    return !statuses.includes(503);
  });
}

const budgetOf = (calls: number) => ({
  limit_usd: (calls * reservedUsd).toFixed(9),
  period: "month",
});

test("a client of OpenAI gives up at once when a budget is spent, and reads why", async () => {
  await using gateway = await startGateway({ sections: { models } });
  const { id } = await keyOf(gateway);
  await create(gateway, { key_id: id, ...budgetOf(1) });
  expect(await statusOf(gateway)).toBe(200);
  const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: gateway.key, maxRetries: 5 });
  const error = await client.chat.completions.create(hello).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(OpenAI.RateLimitError);
  expect(error).toMatchObject({ status: 429, code: "budget_exceeded", type: "insufficient_quota" });
  const { headers, message } = error as InstanceType<typeof OpenAI.RateLimitError>;
  expect(headers.get("x-should-retry")).toBe("false");
  expect(headers.get("retry-after")).toBeNull();
  expect(message).toContain("The monthly budget of this API key is spent");
  expect(message).toContain("Limit 0.04, Spent ");
  expect(message).toContain(`It resets at ${headers.get("x-sluice-budget-reset")}`);
  expect(message).toContain("The operator of the gateway can raise it.");
  const created = await client.responses
    .create({ model: "chat-model", input: "Hello", max_output_tokens: cap })
    .catch((thrown: unknown) => thrown);
  expect(created).toMatchObject({
    status: 429,
    code: "budget_exceeded",
    type: "insufficient_quota",
  });
  // Each was asked once: the budget refused two requests, and the ledger has no more rows.
  expect((await gateway.usage()).filter(({ status }) => status === 429)).toHaveLength(2);
});

test("in Messages a spent budget is a billing error, which says when to come back", async () => {
  await using gateway = await startGateway({ sections: { models } });
  const { account_id } = await keyOf(gateway);
  const { state } = await create(gateway, { account_id, ...budgetOf(1), period: "day" });
  expect(await statusOf(gateway)).toBe(200);
  const refused = await gateway.post("/v1/messages", hello);
  expect(refused.status).toBe(429);
  const body = await refused.text();
  expect(JSON.parse(body)).toMatchObject({ type: "error", error: { type: "billing_error" } });
  // What an account may spend is not for every holder of a key.
  expect(body).not.toContain("0.04");
  // Anthropic's clients obey this, whatever the wait is.
  expect(refused.headers.get("x-should-retry")).toBe("false");
  const waitMs = Number(refused.headers.get("retry-after")) * 1_000;
  expect(Math.abs(Date.now() + waitMs - Date.parse(state.ends_at ?? ""))).toBeLessThan(60_000);
});

test("a budget that only running calls fill is worth another try, and says so", async () => {
  await using gateway = await startGateway({
    sections: { models },
    simulator: { tokensPerSecond: 20 },
  });
  const { id } = await keyOf(gateway);
  await create(gateway, { key_id: id, ...budgetOf(1) });
  const stream = await gateway.post("/v1/chat/completions", { ...hello, stream: true });
  const refused = await gateway.post("/v1/chat/completions", hello);
  expect(refused.status).toBe(429);
  expect(refused.headers.get("x-should-retry")).toBe("true");
  const waitMs = Number(refused.headers.get("retry-after-ms"));
  expect(waitMs).toBeGreaterThan(0);
  expect(waitMs).toBeLessThanOrEqual(60_000);
  expect(await refused.text()).toContain("is reserved for requests under way");
  const reserved = async (): Promise<unknown> => {
    const list = await gateway.admin("GET", "/admin/v1/budgets");
    return listOf(budgetSchema).parse(await list.json()).data[0]?.state.reserved_usd;
  };
  expect(Number(await reserved())).toBe(reservedUsd);
  const tooLarge = await gateway.post("/v1/chat/completions", { ...hello, max_tokens: cap + 1 });
  expect(tooLarge.headers.get("x-should-retry")).toBe("false");
  const told = await tooLarge.text();
  expect(told).toContain("Request too large for the monthly budget");
  // Waiting would not help.
  expect(told).toContain("set `max_tokens`");
  const callId = tooLarge.headers.get("x-request-id");
  const explained = await (await gateway.admin("GET", `/admin/v1/refusals/${callId}`)).text();
  expect(explained).toContain("set `max_tokens`");
  for (const text of [told, explained]) expect(text).not.toContain("It resets at");
  for (const [path, body, field] of [
    [
      "responses",
      { model: hello.model, input: "Hi", max_output_tokens: cap + 1 },
      "max_output_tokens",
    ],
    ["messages", { ...hello, max_tokens: cap + 1 }, "max_tokens"],
  ] as const) {
    const answer = await (await gateway.post(`/v1/${path}`, body)).text();
    expect(answer).toContain(`Please shorten the input, or set \`${field}\` to less.`);
  }
  await stream.text();
  expect(Number(await reserved())).toBe(0);
});

test("nothing stays reserved for calls that fail, are cancelled or refused, or that repeat another", async () => {
  const plans = "{ enterprise: { custom: true, idempotency: true } }";
  await using gateway = await startGateway({ sections: { models, plans } });
  const { id } = await keyOf(gateway);
  const budget = await create(gateway, { key_id: id, ...budgetOf(20) });
  const failing = { ...hello, model: "failing-model" };
  expect(await statusOf(gateway, failing)).toBe(503);
  expect(await statusOf(gateway, { ...hello, temperature: "hot" })).toBe(400);
  expect(await statusOf(gateway, { ...hello, model: "unknown" })).toBe(400);
  for (let times = 0; times < 5; times += 1) {
    const leaving = new AbortController();
    const body = { ...hello, model: "stalling-model", stream: true };
    const { signal } = leaving;
    const stream = await gateway.post("/v1/chat/completions", body, { signal });
    await stream.body?.getReader().read();
    leaving.abort();
  }
  const headers = { "idempotency-key": "once" };
  for (let times = 0; times < 3; times += 1) {
    const answer = await gateway.post("/v1/chat/completions", hello, { headers });
    expect(answer.status).toBe(200);
    await answer.text();
  }
  // One of them was a call.
  expect((await gateway.usage()).filter(({ status }) => status === 200)).toHaveLength(1);
  const inputs = Array.from({ length: 100 }, (_, index) => `text ${index}`);
  const embedded = await gateway.post("/v1/embeddings", {
    model: "embedding-model",
    input: inputs,
  });
  expect(embedded.status).toBe(200);
  await embedded.text();
  await until(
    async () => (await gateway.usage()).filter(({ status }) => status === 499).length === 5,
  );
  const spent = await costOfRows(gateway);
  const rest = Number(budget.limit_usd) * nano - spent;
  // What is left is exactly what the rows have not cost.
  const fits = Math.floor(rest / (reservedUsd * nano));
  expect(fits).toBeGreaterThan(0);
  const most = Math.floor(rest / 1_000_000);
  expect(await statusOf(gateway, { ...hello, max_tokens: most })).toBe(200);
  const usage = await costOfRows(gateway);
  const left = Math.floor((Number(budget.limit_usd) * nano - usage) / 1_000_000);
  expect(await statusOf(gateway, { ...hello, max_tokens: left + 1 })).toBe(429);
}, 180_000);

describe("a model without a price", () => {
  test("is not for keys under a budget", async () => {
    await using gateway = await startGateway({ sections: { models } });
    const { id } = await keyOf(gateway);
    const unpriced = { ...hello, model: "unpriced-model" };
    expect(await statusOf(gateway, unpriced)).toBe(200);
    await create(gateway, { key_id: id, ...budgetOf(100) });
    const refused = await gateway.post("/v1/chat/completions", unpriced);
    expect(refused.status).toBe(403);
    expect(await refused.json()).toMatchObject({
      error: { code: "model_not_priced", type: "invalid_request_error", param: "model" },
    });
  });

  test("nor is one without a price of what any request may be billed, and the error names it", async () => {
    await using gateway = await startGateway({ sections: { models } });
    const { id } = await keyOf(gateway);
    await create(gateway, { key_id: id, ...budgetOf(100) });
    const refused = await gateway.post("/v1/chat/completions", { ...hello, model: "cache-model" });
    expect(refused.status).toBe(403);
    expect(await refused.json()).toMatchObject({
      error: {
        code: "model_not_priced",
        message: expect.stringContaining("`cache-model` has no price of cache_read, and a budget"),
      },
    });
    const complete = models.replace(
      "input: 0, output: 1000",
      "input: 0, cache_read: 0, output: 1000",
    );
    await gateway.reconfigure({ models: complete });
    await until(async () => (await statusOf(gateway, { ...hello, model: "cache-model" })) !== 403);
  });

  test("leaves a call to the target that has one", async () => {
    await using gateway = await startGateway({ sections: { models } });
    const { id } = await keyOf(gateway);
    await create(gateway, { key_id: id, ...budgetOf(100) });
    for (let times = 0; times < 5; times += 1) {
      expect(await statusOf(gateway, { ...hello, model: "half-priced-model" })).toBe(200);
    }
    const rows = await gateway.usage();
    expect(new Set(rows.map(({ target }) => target))).toEqual(
      new Set(["simulator/simulated-chat"]),
    );
  });
});

test("of many calls at once as many are served as a budget is for", async () => {
  await using gateway = await startGateway({
    sections: { models },
    simulator: { tokensPerSecond: 25 },
  });
  const { id } = await keyOf(gateway);
  await create(gateway, { key_id: id, ...budgetOf(10) });
  expect(await fitting(gateway, 60)).toBe(10);
}, 180_000);

describeWithValkey(() => {
  test("processes share a budget exactly, and tell the server again what it has lost", async () => {
    await using server = await startValkey();
    await using gateway = await startGateway({
      processes: 3,
      sections: { models, limits: `{ store: "${server.url}", timeout: 5s }` },
      simulator: { tokensPerSecond: 25 },
    });
    const { id } = await keyOf(gateway);
    const budget = await create(gateway, { key_id: id, ...budgetOf(9) });
    const limitNano = Number(budget.limit_usd) * nano;
    await everyProcessDecides(gateway);
    const left = limitNano - (await costOfRows(gateway));
    expect(await fitting(gateway, 60)).toBe(Math.floor(left / (reservedUsd * nano)));
    // Each process has refused some, and whichever is asked tells of all.
    const refusals = await gateway.admin("GET", "/admin/v1/refusals?limit=100");
    expect(await refusals.text()).toContain('"model":null,"period":"month"');
    await server.command("FLUSHALL");
    // Until every process has told what it has spent, nobody decides.
    await everyProcessDecides(gateway);
    expect(await fitting(gateway, 60)).toBeLessThanOrEqual(1);
    expect(await costOfRows(gateway)).toBeLessThanOrEqual(limitNano);
    // Without the server nobody spends anything, and calls under no budget go on.
    const raise = { revision: 1, limit_usd: "100" };
    await gateway.admin("PATCH", `/admin/v1/budgets/${budget.id}`, raise);
    expect(await statusOf(gateway)).toBe(200);
    await server.kill();
    expect(await statusOf(gateway)).toBe(503);
    const { text: other } = await gateway.createKey({ account: "other", application: "other" });
    const free = await gateway.post("/v1/chat/completions", hello, {
      headers: { authorization: `Bearer ${other}` },
    });
    expect(free.status).toBe(200);
    await free.text();
  }, 180_000);
});
