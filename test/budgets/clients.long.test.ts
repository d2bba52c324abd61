/** Official clients whose budget is spent, or filled by calls that run: which error, how many tries. */
import { expect, test } from "bun:test";
import OpenAI from "openai";
import { nodeClients } from "../clients/node-clients.ts";
import { pythonWithClients, pythonPrograms } from "../sdk/python-clients.ts";
import { installTimeoutMs, run, testNeedingRegistry } from "../sdk/registry-test.ts";
import {
  BudgetGateway,
  facts,
  hello,
  price,
  nanoPerToken,
  usdOf,
} from "../support/budget-gateway.ts";
import { until } from "../support/until.ts";

/** A client that tries up to five times more makes one call; rejects if that ends otherwise than it should. */
type Client = (
  state: "spent" | "reserved",
  env: Readonly<Record<string, string>>,
) => Promise<unknown>;

const python =
  (surface: string): Client =>
  async (state, env) =>
    run([await pythonWithClients(), `${pythonPrograms}/budget_client.py`, surface, state], { env });

const node: Client = async (state, env) =>
  run(["node", "budget.mjs", state], { cwd: await nodeClients(), env });

const openai =
  (surface: "chat" | "responses"): Client =>
  async (state, { SLUICE_BASE_URL: baseURL, SLUICE_KEY: apiKey }) => {
    const client = new OpenAI({ baseURL, apiKey, maxRetries: 5 });
    const call =
      surface === "chat"
        ? client.chat.completions.create(hello)
        : client.responses.create({ model: "chat-model", input: "Hello", max_output_tokens: 40 });
    if (state === "reserved") return call;
    const error: unknown = await call.catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(OpenAI.RateLimitError);
    return expect(error).toMatchObject({ code: "budget_exceeded", type: "insufficient_quota" });
  };

const models = `
  chat-model: { ${facts}, targets: [{ model: simulated-chat, upstream: simulator, ${price} }] }
  stalling-model: { ${facts}, targets: [{ model: fault-stall-mid, upstream: simulator, ${price} }] }`;

async function checkClient(client: Client): Promise<void> {
  await using gateway = await BudgetGateway.start({ sections: { models } });
  const refusals = async () => (await gateway.rows()).filter(({ status }) => status === 429).length;
  const { id } = await gateway.key();
  const env = { SLUICE_BASE_URL: `${gateway.gateway.url}/v1`, SLUICE_KEY: gateway.gateway.key };
  const limit_usd = usdOf(hello.max_tokens * nanoPerToken);
  const budget = await gateway.create({ key_id: id, limit_usd, period: "month" });
  const leaving = new AbortController();
  const { signal } = leaving;
  const endless = { ...hello, model: "stalling-model", stream: true };
  const stream = await gateway.gateway.post("/v1/chat/completions", endless, { signal });
  const reading = stream.text().catch(() => undefined);
  const calling = client("reserved", env);
  await Promise.race([calling, until(async () => (await refusals()) > 0)]);
  const { revision } = await gateway.budget(budget.id);
  await gateway.json("PATCH", `/budgets/${budget.id}`, { revision, limit_usd: "5" });
  await calling;
  leaving.abort();
  await reading;
  await until(async () => (await gateway.rows()).some(({ status }) => status === 499));
  const before = await refusals();
  expect(before).toBeGreaterThan(0);
  const cost = await gateway.costOfRows();
  const spent = { revision: revision + 1, limit_usd: usdOf(cost) };
  await gateway.json("PATCH", `/budgets/${budget.id}`, spent);
  await client("spent", env);
  expect(await refusals()).toBe(before + 1);
}

test.each(["chat", "responses"] as const)(
  "OpenAI's client in TypeScript asks for %s again while running calls fill a budget, and once if it is spent",
  async (surface) => {
    await checkClient(openai(surface));
  },
  60_000,
);

testNeedingRegistry("python3").each(["chat", "responses", "messages"])(
  "official clients in Python ask for %s again while running calls fill a budget, and once if it is spent",
  async (surface) => {
    await checkClient(python(surface));
  },
  installTimeoutMs,
);

testNeedingRegistry("node")(
  "Anthropic's client in TypeScript asks again while running calls fill a budget, and once if it is spent",
  async () => {
    await checkClient(node);
  },
  installTimeoutMs,
);
