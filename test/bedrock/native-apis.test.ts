import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { demoApiKey, startSimulator, type Simulator } from "../../simulator/simulator.ts";
import { formatProblems, parseConfig } from "../../src/config/load.ts";
import { openAiPath, usualApi } from "../../src/upstreams/bedrock/models/apis.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";

/** OpenAI's APIs of Bedrock at both of its addresses, with a signature and with a key. */
let provider: Simulator;
let gateway: TestGateway;

const model = "openai.gpt-6-astra";

beforeAll(async () => {
  provider = startSimulator();
  const { accessKeyId, secretAccessKey } = provider.credential;
  const at = `kind: bedrock, region: us-west-2, endpoint: "${provider.origin}"`;
  const keys = `access_key_id: ${accessKeyId}, secret_access_key: "${secretAccessKey}"`;
  const alias = (upstream: string, api: string): string => `
  ${upstream}-${api}:
    kind: chat
    context_window: 1000000
    targets: [{ upstream: ${upstream}, model: ${model}, bedrock: { api: ${api} } }]`;
  gateway = await startGateway({
    sections: {
      upstreams: `
  signed: { ${at}, ${keys} }
  keyed: { ${at}, api_key: "${demoApiKey}" }
  mantle: { ${at}, service: mantle, ${keys} }
  wrong: { ${at}, api_key: "bedrock-api-key-wrong" }`,
      models: ["signed", "keyed", "mantle", "wrong"]
        .flatMap((upstream) => [
          alias(upstream, "openai-chat"),
          alias(upstream, "openai-responses"),
        ])
        .join(""),
    },
  });
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await provider[Symbol.asyncDispose]();
});

const tool = { name: "weather", parameters: { type: "object", properties: {} } };
const ask = (alias: string, fields: object = {}) =>
  gateway.post("/v1/chat/completions", {
    model: alias,
    messages: [{ role: "user", content: "echo: one two" }],
    ...fields,
  });

describe.each(["signed", "keyed", "mantle"])("%s", (upstream) => {
  test.each(["openai-chat", "openai-responses"])(
    "%s answers, whole and streamed, with its usage",
    async (api) => {
      const alias = `${upstream}-${api}`;
      const whole = await ask(alias);
      const text = await whole.text();
      expect([whole.status, text]).toEqual([200, expect.stringContaining("one two") as string]);
      const streamed = await (await ask(alias, { stream: true })).text();
      expect(streamed).toEndWith("data: [DONE]\n\n");
      const called = await ask(alias, {
        tools: [{ type: "function", function: tool }],
        tool_choice: "required",
      });
      expect(await called.text()).toContain('"finish_reason":"tool_calls"');
      const rows = await gateway.usage();
      expect(rows.slice(0, 3).map(({ usageSource }) => usageSource)).toEqual([
        "upstream",
        "upstream",
        "upstream",
      ]);
    },
  );
});

describe.each(["openai-chat", "openai-responses"])("%s", (api) => {
  test.each([
    ["context-overflow", 400, "context_length_exceeded"],
    ["throttle-429-bare", 503, "model_unavailable"],
    ["error-500", 503, "model_unavailable"],
    ["error-200", 503, "model_unavailable"],
    ["non-sse-200", 503, "model_unavailable"],
    ["model-not-found-404", 503, "model_unavailable"],
  ] as const)("tells of %s as elsewhere", async (mode, status, code) => {
    for (const stream of [false, true]) {
      provider.setFaultPlan([{ mode, times: 9 }]);
      const response = await ask(`signed-${api}`, { stream });
      provider.setFaultPlan([]);
      const text = await response.text();
      expect(response.status).toBe(status);
      expect(text).toContain(code);
    }
  });

  test("reads the service's own refusals", async () => {
    const response = await ask(`wrong-${api}`);
    expect(response.status).toBe(503);
    await response.text();
  });
});

test.each([
  // strands-agents/harness-sdk#3279, maximhq/bifrost#4412
  ["openai.gpt-5.4", "mantle", "openai-responses", "/openai/v1"],
  ["openai.gpt-oss-120b", "mantle", "openai-chat", "/v1"],
  // NousResearch/hermes-agent#52316
  ["xai.grok-4.3", "mantle", "openai-chat", "/openai/v1"],
  // openai/openai-go#812
  ["moonshotai.kimi-k2.5", "mantle", "openai-chat", "/v1"],
  ["anthropic.claude-opus-5", "mantle", "messages", "/v1"],
  ["us.openai.gpt-6-sol", "runtime", "converse", "/openai/v1"],
  ["us.xai.grok-4.6", "runtime", "openai-chat", "/openai/v1"],
  [
    "arn:aws:bedrock:us-east-1:111122223333:provisioned-model/a",
    "runtime",
    "converse",
    "/openai/v1",
  ],
] as const)("%s at %s is called by %s below %s", (identifier, service, api, path) => {
  expect([usualApi(identifier, service), openAiPath(identifier, service)]).toEqual([api, path]);
});

const guardrail = 'guardrail: { identifier: abc, version: "1" }';

test.each([
  ["service: mantle", "openai.gpt-6-astra", "", undefined],
  ["", "openai.gpt-6-astra", "api: openai-responses", undefined],
  ["", "openai.gpt-6-astra", `api: openai-chat, ${guardrail}`, undefined],
  [
    "",
    "openai.gpt-6-astra",
    `api: openai-responses, ${guardrail}`,
    "guardrail: is ignored by api: openai-responses: use api: converse or openai-chat",
  ],
  [
    "service: mantle",
    "openai.gpt-6-astra",
    guardrail,
    "guardrail: is ignored by service: mantle: use api: converse",
  ],
  ["", "anthropic.claude-opus-4-6-v1", "api: openai-chat", "api: must be converse or messages"],
  ["", "openai.gpt-oss-120b-1:0", "api: openai-responses", "api: must be converse or openai-chat"],
  ["", "openai.gpt-5.4", "", "model: is not at this address: use an upstream with service: mantle"],
  [
    "service: mantle",
    "amazon.nova-pro-v1:0",
    "",
    "model: is not at this address: use an upstream with service: runtime",
  ],
  [
    "service: mantle",
    "us.anthropic.claude-opus-5",
    "",
    "model: must be anthropic.claude-opus-5: service: mantle knows no profiles",
  ],
  [
    "service: mantle, fips: true",
    "openai.gpt-6-astra",
    "",
    "fips: must not be set with service: mantle",
  ],
  [
    "",
    "openai.gpt-6-astra",
    "api: openai-chat, prompt_cache: auto",
    "prompt_cache: is for api: converse only",
  ],
])("a file with { %s }, %s and { %s }: %s", (upstream, identifier, section, problem) => {
  const file = `
environments: [{ name: test, hosts: ["*"], models: ["*"] }]
upstreams: { aws: { kind: bedrock, region: us-west-2${upstream && `, ${upstream}`} } }
models:
  one: { kind: chat, context_window: 9000, targets: [{ upstream: aws, model: "${identifier}", bedrock: { ${section} } }] }
`;
  const result = parseConfig(file, { name: "file", env: {} });
  const told = result.ok ? "" : formatProblems("file", result.problems);
  if (problem === undefined) expect(told).toBe("");
  else expect(told).toContain(problem);
});
