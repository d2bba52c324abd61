import { expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import {
  budgetSchema,
  changedBudgetSchema,
  explanationSchema,
} from "../../src/control/contract.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { until } from "../support/until.ts";
import { startWebhookReceiver, webhookSecret } from "../support/webhook-receiver.ts";

/** A call costs some thousandths of a dollar. */
const models = `
  chat-model:
    kind: chat
    context_window: 200000
    max_output_tokens: 64000
    targets: [{ model: simulated-chat, upstream: simulator, price: { input: 100, cache_read: 0, output: 100 } }]`;
const hello = {
  model: "chat-model",
  max_completion_tokens: 40,
  messages: [{ role: "user", content: "Hello" }],
};
const nano = 1_000_000_000;
const errorSchema = z.object({ error: z.object({ code: z.string(), message: z.string() }) });

async function call(gateway: TestGateway) {
  const response = await gateway.post("/v1/chat/completions", hello);
  const text = await response.text();
  const { headers, status } = response;
  return { status, id: headers.get("x-request-id") ?? "", headers, text };
}

async function create(gateway: TestGateway, body: object) {
  const answer = await gateway.admin("POST", "/admin/v1/budgets", body);
  return budgetSchema.parse(await answer.json());
}

async function keyOf(gateway: TestGateway) {
  const answer = await gateway.admin("GET", "/admin/v1/keys");
  const { data } = z
    .object({ data: z.array(z.object({ id: z.string(), account_id: z.string() })) })
    .parse(await answer.json());
  const [key] = data;
  if (key === undefined) throw new Error("there is no key");
  return key;
}

/** What the stored rows of the gateway cost. */
async function costOfRows(gateway: TestGateway): Promise<number> {
  const rows = await gateway.usage();
  return rows.reduce((sum, { costNano = 0 }) => sum + costNano, 0);
}

test("a budget is spent, its refusal is explained, and a raise lets calls in again", async () => {
  await using gateway = await startGateway({ sections: { models } });
  const key = await keyOf(gateway);
  // Calls of before count.
  expect((await call(gateway)).status).toBe(200);
  const first = await costOfRows(gateway);
  expect(first).toBeGreaterThan(0);
  const limit_usd = ((first * 3.5) / nano).toFixed(9);
  const budget = await create(gateway, { key_id: key.id, limit_usd, period: "month" });
  expect(Number(budget.state.spent_usd) * nano).toBeCloseTo(first, 0);
  let refused = await call(gateway);
  let served = 1;
  for (; refused.status === 200; refused = await call(gateway)) served += 1;
  expect(served).toBeLessThanOrEqual(3);
  expect(refused.status).toBe(429);
  const { error } = errorSchema.parse(JSON.parse(refused.text));
  expect(error.code).toBe("budget_exceeded");
  expect(error.message).toContain("monthly budget");
  expect(refused.headers.get("x-sluice-budget-reset")).toBe(budget.state.ends_at);

  const asked = await gateway.admin("GET", `/admin/v1/explain/${refused.id}`);
  const { refusal } = explanationSchema.parse(await asked.json());
  const limit = `${limit_usd}`;
  expect(refusal?.budget).toMatchObject({ id: budget.id, scope: "key", limit_usd: limit });

  const usage = await (await gateway.get("/v1/usage")).json();
  const spent = await costOfRows(gateway);
  expect(usage).toMatchObject({ budgets: [{ id: budget.id, scope: "key", limit_usd: limit }] });
  const shown = await gateway.admin("GET", `/admin/v1/budgets/${budget.id}`);
  const { state } = budgetSchema.parse(await shown.json());
  expect(state.spent_usd).toBe((spent / nano).toFixed(9));

  const change = { revision: 1, limit_usd: "5" };
  const changed = await gateway.admin("PATCH", `/admin/v1/budgets/${budget.id}`, change);
  expect(changedBudgetSchema.parse(await changed.json())).toMatchObject({
    limit_usd: "5.000000000",
    applied: { processes: 1, of: 1 },
  });
  expect((await call(gateway)).status).toBe(200);
});

test("a deleted budget refuses nothing, and one that warns never does", async () => {
  await using gateway = await startGateway({ sections: { models } });
  const { account_id } = await keyOf(gateway);
  const small = { account_id, limit_usd: "0.000000001", period: "total" };
  await create(gateway, { ...small, mode: "warn" });
  expect((await call(gateway)).status).toBe(200);
  const { id } = await create(gateway, small);
  const refused = await call(gateway);
  expect(refused.status).toBe(429);
  // What an account may spend is not for every holder of a key.
  expect(refused.text).not.toContain("0.00");
  const usage = await (await gateway.get("/v1/usage")).json();
  const hidden = { scope: "account", limit_usd: null, spent_usd: null, remaining_usd: null };
  expect(usage).toMatchObject({ budgets: [hidden, { id, ...hidden }] });
  await gateway.admin("DELETE", `/admin/v1/budgets/${id}`);
  expect((await call(gateway)).status).toBe(200);
});

test("thresholds are told by webhook and file, after the calls that reached them", async () => {
  const folder = mkdtempSync(join(tmpdir(), "sluice-budgets-"));
  const path = join(folder, "usage.ndjson");
  await using receiver = startWebhookReceiver();
  const webhook = `{ url: "${receiver.url}", secret: ${webhookSecret}, longest_pause: 1s }`;
  const ledger = `{ flush_interval: 10ms, events: { webhook: ${webhook}, file: { path: "${path}" } } }`;
  await using gateway = await startGateway({ sections: { models, ledger } });
  const { account_id } = await keyOf(gateway);
  expect((await call(gateway)).status).toBe(200);
  const limit_usd = (((await costOfRows(gateway)) * 3) / nano).toFixed(9);
  const budget = await create(gateway, { account_id, limit_usd, period: "month", mode: "warn" });
  for (let count = 0; count < 5; count += 1) {
    expect((await call(gateway)).status).toBe(200);
    await gateway.app.flushUsage();
  }
  await until(() => receiver.alerts.some(({ type }) => type === "budget.exhausted"));
  const [first, ...others] = receiver.alerts;
  expect(first).toMatchObject({
    type: "budget.threshold",
    data: { budget_id: budget.id, account_id, limit_usd, mode: "warn", thresholds: [50] },
  });
  const thresholds = receiver.alerts.flatMap(({ data }) => data["thresholds"]);
  expect(thresholds).toEqual([50, 80, 100]);
  expect(others.at(-1)?.data["resets_at"]).toBe(budget.state.ends_at);
  const lines = readFileSync(path, "utf8")
    .trim()
    .split("\n")
    .map((line) => z.looseObject({ id: z.string() }).parse(JSON.parse(line)));
  const told = receiver.alerts.map(({ type, data }) => ({ type, ...data }));
  expect(lines.filter(({ type }) => type !== undefined)).toEqual(told);
  expect(lines).toHaveLength(6 + told.length);
  rmSync(folder, { recursive: true });
});

test("callers that are refused are told by webhook, also when a limit is set below what is spent", async () => {
  await using receiver = startWebhookReceiver();
  const webhook = `{ url: "${receiver.url}", secret: ${webhookSecret}, longest_pause: 1s }`;
  const ledger = `{ flush_interval: 10ms, events: { webhook: ${webhook} } }`;
  await using gateway = await startGateway({ sections: { models, ledger } });
  const { account_id } = await keyOf(gateway);
  for (let count = 0; count < 3; count += 1) expect((await call(gateway)).status).toBe(200);
  const spent = await costOfRows(gateway);
  const limit_usd = ((spent * 1.1) / nano).toFixed(9);
  const { id } = await create(gateway, { account_id, limit_usd, period: "month" });
  for (let count = 0; count < 3; count += 1) expect((await call(gateway)).status).toBe(429);
  const exhausted = () => receiver.alerts.filter(({ type }) => type === "budget.exhausted");
  await until(() => exhausted().length > 0);
  expect(exhausted()).toMatchObject([{ data: { budget_id: id, limit_usd } }]);
  expect(exhausted()[0]?.data["thresholds"]).not.toContain(100);
  for (const [revision, share] of [10, 0.9].entries()) {
    const changed = { revision: revision + 1, limit_usd: ((spent * share) / nano).toFixed(9) };
    const answer = await gateway.admin("PATCH", `/admin/v1/budgets/${id}`, changed);
    expect(answer.status).toBe(200);
  }
  expect((await call(gateway)).status).toBe(429);
  await until(() => exhausted().length > 1);
  expect(exhausted()[1]?.data).toMatchObject({ budget_id: id, thresholds: [50, 80, 100] });
});
