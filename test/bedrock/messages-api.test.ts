import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { demoApiKey, startSimulator, type Simulator } from "../../simulator/simulator.ts";
import { formatProblems, parseConfig } from "../../src/config/load.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";

/** Claude of Bedrock by its own API, with a signature and with a key. */
const model = "us.anthropic.claude-sonnet-4-6";
let provider: Simulator;
let gateway: TestGateway;

beforeAll(async () => {
  provider = startSimulator();
  const { accessKeyId, secretAccessKey } = provider.credential;
  const upstream = `kind: bedrock, region: us-east-1, endpoint: "${provider.origin}"`;
  const alias = (name: string, more = ""): string => `
  ${name}:
    kind: chat
    context_window: 1000000
    max_output_tokens: 128000
    targets: [{ upstream: ${name}, model: ${model}, bedrock: { api: messages${more} } }]`;
  gateway = await startGateway({
    sections: {
      upstreams: `
  signed: { ${upstream}, access_key_id: ${accessKeyId}, secret_access_key: "${secretAccessKey}" }
  keyed: { ${upstream}, api_key: "${demoApiKey}" }
  wrong: { ${upstream}, api_key: "bedrock-api-key-wrong" }`,
      models: alias("signed") + alias("keyed") + alias("wrong"),
    },
  });
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await provider[Symbol.asyncDispose]();
});

const weather = { name: "weather", input_schema: { type: "object", properties: {} }, strict: true };
const ask = (alias: string, stream: boolean) =>
  gateway.post("/v1/messages", {
    model: alias,
    max_tokens: 4_000,
    stream,
    thinking: { type: "adaptive" },
    metadata: { user_id: "someone" },
    tools: [weather],
    messages: [{ role: "user", content: "echo: one two" }],
  });

describe.each(["signed", "keyed"])("%s", (alias) => {
  test("a call is answered, whole and streamed, with thoughts", async () => {
    const response = await ask(alias, false);
    const text = await response.text();
    expect(response.status).toBe(200);
    expect(text).toContain('"thinking"');
    const streamed = await (await ask(alias, true)).text();
    expect(streamed).toContain("signature_delta");
    expect(streamed).toContain("message_stop");
    const rows = await gateway.usage();
    expect(rows.slice(0, 2).map(({ usageSource }) => usageSource)).toEqual([
      "upstream",
      "upstream",
    ]);
  });

  test("a prompt that is too long, and a throttle, are told as elsewhere", async () => {
    provider.setFaultPlan([{ mode: "context-overflow" }]);
    const overflow = await ask(alias, false);
    expect(await overflow.text()).toContain("prompt is too long: 208310 tokens");
    expect(overflow.status).toBe(400);
    provider.setFaultPlan([{ mode: "throttle-429-bare", times: 9 }]);
    const throttled = await ask(alias, true);
    provider.setFaultPlan([]);
    expect(throttled.status).toBe(529);
    await throttled.text();
  });
});

test("the service's own refusals are read too", async () => {
  const response = await ask("wrong", false);
  expect(response.status).not.toBe(200);
  expect(await response.text()).toContain("refused the gateway's credential");
});

test("settings of Converse, and other models, are refused with it", () => {
  const file = (target: string): string => `
environments: [{ name: test, hosts: ["*"], models: ["*"] }]
upstreams: { aws: { kind: bedrock, region: us-east-1 } }
models: { m: { kind: chat, context_window: 1000, targets: [{ upstream: aws, ${target} }] } }
`;
  const problemsOf = (target: string): string => {
    const result = parseConfig(file(target), { name: "file", env: {} });
    return result.ok ? "" : formatProblems("file", result.problems);
  };
  expect(problemsOf(`model: ${model}, bedrock: { api: messages }`)).toBe("");
  expect(problemsOf(`model: ${model}, bedrock: { api: messages, latency: optimized }`)).toContain(
    "bedrock.latency: is for api: converse only",
  );
  expect(problemsOf("model: us.amazon.nova-pro-v1:0, bedrock: { api: messages }")).toContain(
    "bedrock.api: must be converse",
  );
});
