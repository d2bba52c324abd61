import { afterAll, beforeAll, expect, test } from "bun:test";
import { demoApiKey, startSimulator, type Simulator } from "../../simulator/simulator.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";

/** What `bedrock-mantle` and the newest models of OpenAI do in another way. */
let provider: Simulator;
let gateway: TestGateway;

beforeAll(async () => {
  provider = startSimulator();
  const at = `kind: bedrock, region: us-west-2, endpoint: "${provider.origin}", api_key: "${demoApiKey}"`;
  const alias = (name: string, target: string): string =>
    `\n  ${name}: { kind: chat, context_window: 1000000, targets: [${target}] }`;
  const gpt = (api: string): string =>
    `{ upstream: runtime, model: us.openai.gpt-6-sol, bedrock: { api: ${api} } }`;
  gateway = await startGateway({
    sections: {
      upstreams: `
  mantle: { ${at}, service: mantle, count_tokens: true }
  runtime: { ${at} }`,
      models:
        alias("claude", "{ upstream: mantle, model: anthropic.claude-opus-5 }") +
        alias("kimi", "{ upstream: mantle, model: moonshotai.kimi-k2.5 }") +
        ["openai-chat", "openai-responses", "converse"].map((api) => alias(api, gpt(api))).join(""),
    },
  });
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await provider[Symbol.asyncDispose]();
});

const messages = [{ role: "user", content: "echo: one two" }];

test("Claude's input is counted there, and another model's is estimated", async () => {
  const count = async (model: string) => {
    const response = await gateway.post("/v1/messages/count_tokens", { model, messages });
    return [response.status, ((await response.json()) as { input_tokens: number }).input_tokens];
  };
  const [status, counted] = await count("claude");
  const [truth] = provider.truth.entries.slice(-1);
  expect([status, truth?.kind, truth?.promptTokens]).toEqual([200, "count-tokens", counted]);
  const before = provider.truth.size;
  expect((await count("kimi"))[0]).toBe(200);
  expect(provider.truth.size).toBe(before);
});

test("a count that is refused names the permission", async () => {
  provider.setFaultPlan([{ mode: "bad-credential", times: 1 }]);
  const response = await gateway.post("/v1/messages/count_tokens", {
    model: "claude",
    messages: [{ role: "user", content: "another" }],
  });
  expect(response.status).toBe(200);
  await response.text();
  expect(gateway.log.join("\n")).toContain("bedrock-mantle:CountTokens");
});

// BerriAI/litellm-docs#1583: no other temperature than 1.
test.each(["openai-chat", "openai-responses"])(
  "GPT-5.6 and later get no temperature by %s, and the caller is told if it was another than 1",
  async (model) => {
    for (const [temperature, told] of [
      [0.2, "temperature=dropped"],
      [1, ""],
    ] as const) {
      const body = { model, messages, temperature, top_p: 1 };
      const response = await gateway.post("/v1/chat/completions", body);
      expect(response.status).toBe(200);
      await response.text();
      expect(response.headers.get("x-sluice-adjusted-parameters") ?? "").toBe(told);
    }
  },
);

test("by Converse, another temperature than 1 is refused as for other models without it", async () => {
  const ask = (temperature: number) =>
    gateway.post("/v1/chat/completions", { model: "converse", messages, temperature });
  const refused = await ask(0.2);
  expect([refused.status, await refused.text()]).toEqual([
    400,
    expect.stringContaining("does not support temperature. Omit it or send 1.") as string,
  ]);
  const taken = await ask(1);
  expect(taken.status).toBe(200);
  await taken.text();
});

test.each([
  ["max_tokens", "/v1/chat/completions", { messages }],
  ["max_completion_tokens", "/v1/chat/completions", { messages }],
  ["max_tokens", "/v1/messages", { messages }],
])(
  "a %s below 16 of %s is raised for Responses, in request and ledger",
  async (field, path, body) => {
    const limited = await gateway.createKey({
      application: `capped ${field} ${path}`,
      limits: { tokensPerMinute: 1_000, requestsPerMinute: 100 },
    });
    const count = { role: "user", content: "count: 90" };
    const response = await gateway.post(
      path,
      { ...body, model: "openai-responses", messages: [count], [field]: 3 },
      { headers: { authorization: `Bearer ${limited.text}`, "anthropic-version": "2023-06-01" } },
    );
    expect(response.status).toBe(200);
    await response.text();
    expect(response.headers.get("x-sluice-adjusted-parameters")).toContain(`${field}=16`);
    const [row] = await gateway.usage();
    const truth = provider.truth.entries.at(-1);
    expect([row?.inputTokens, row?.outputTokens]).toEqual([truth?.promptTokens, 16]);
    expect(row?.usageSource).toBe("upstream");
  },
);
