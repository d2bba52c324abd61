import { expect, test } from "bun:test";
import { bedrockUpstream, startGateway, type TestGateway } from "../support/gateway.ts";

const chat = (alias: string, ...models: readonly string[]): string => `
  ${alias}:
    kind: chat
    context_window: 200000
    max_output_tokens: 8192
    targets: [${models.map((model, at) => `{ upstream: simulator, model: "${model}", priority: ${at + 1} }`).join(", ")}]`;

const haiku = "us.anthropic.claude-3-5-haiku-20241022-v1:0";
const nova = "us.amazon.nova-pro-v1:0";
const nova2 = "us.amazon.nova-2-lite-v1:0";

const ask = (gateway: TestGateway, model: string, fields: object = {}): Promise<Response> =>
  gateway.post("/v1/chat/completions", {
    model,
    messages: [{ role: "user", content: "echo: hi" }],
    ...fields,
  });

test("an ended model is the operator's fault, and the next target answers for it", async () => {
  await using gateway = await startGateway({
    kind: "bedrock",
    simulator: { bedrock: { modelsAsOf: Date.parse("2026-11-23") } },
    sections: { models: chat("ended", haiku) + chat("moved", haiku, nova) },
  });
  const response = await ask(gateway, "ended");
  expect(response.status).toBe(503);
  expect(await response.json()).toMatchObject({ error: { code: "model_unavailable" } });
  expect(gateway.log.join("\n")).toContain("reached its end of life on 2026-06-19");
  expect((await ask(gateway, "moved")).status).toBe(200);
});

test("Haiku 3.5 gets no image, and says so", async () => {
  await using gateway = await startGateway({
    kind: "bedrock",
    sections: { models: chat("haiku", haiku) },
  });
  const url = "data:image/png;base64,iVBORw0KGgo=";
  const content = [
    { type: "text", text: "What is it?" },
    { type: "image_url", image_url: { url } },
  ];
  const response = await ask(gateway, "haiku", { messages: [{ role: "user", content }] });
  expect(response.status).toBe(400);
  expect(await response.json()).toMatchObject({ error: { code: "unsupported_parameter" } });
  expect(gateway.simulator.truth.entries).toEqual([]);
});

test("both generations of Nova take top_k, and the second an effort with or without a cap", async () => {
  await using gateway = await startGateway({
    kind: "bedrock",
    sections: {
      models:
        chat("nova", nova) + chat("nova-2", nova2) + chat("free", nova2).replace("8192", "65535"),
    },
  });
  for (const [model, fields] of [
    ["nova", { top_k: 20, reasoning_effort: "high", temperature: 0.4 }],
    ["nova-2", { top_k: 20, reasoning_effort: "low", temperature: 0.4, max_tokens: 50 }],
    ["nova-2", { top_k: 20, reasoning_effort: "high", temperature: 0.4 }],
    ["free", { top_k: 20, reasoning_effort: "high", temperature: 0.4, top_p: 0.5 }],
    ["free", { reasoning_effort: "xhigh", max_completion_tokens: 50 }],
  ] as const) {
    expect([model, (await ask(gateway, model, fields)).status]).toEqual([model, 200]);
  }
  const { headers } = await ask(gateway, "nova-2", { reasoning_effort: "high" });
  expect(headers.get("x-sluice-adjusted-parameters")).toBe("reasoning_effort=medium");
});

test("an operator's family counts like those that Sluice knows, from its reload on", async () => {
  const model = "us.acme.roadrunner-1-v1:0";
  await using gateway = await startGateway({
    kind: "bedrock",
    simulator: { bedrock: { models: { [model]: {} } } },
    sections: { models: chat("runner", model) },
  });
  const parameters = { type: "object", properties: {} };
  const tools = [{ type: "function", function: { name: "run", parameters } }];
  const before = await ask(gateway, "runner", { tools, max_tokens: 20 });
  expect(before.status).toBe(200);
  const family =
    "{ models: '^acme[.]roadrunner-', like: titan-text, capabilities: { system: true } }";
  const upstream = bedrockUpstream(gateway.simulator.origin, `families: { roadrunner: ${family} }`);
  await gateway.reconfigure({ upstreams: `\n  simulator: ${upstream}` });
  const refused = await ask(gateway, "runner", { tools, max_tokens: 20 });
  expect(refused.status).toBe(400);
  expect(await refused.json()).toMatchObject({
    error: { param: "tools", code: "unsupported_parameter" },
  });
  expect((await ask(gateway, "runner")).status).toBe(200);
});
