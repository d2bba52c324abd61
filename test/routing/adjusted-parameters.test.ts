import { afterAll, beforeAll, expect, test } from "bun:test";
import { errorOf } from "../support/bodies.ts";
import { simulatorUpstream, startGateway, type TestGateway } from "../support/gateway.ts";

/** The headers for fields that were changed or dropped for a target, over HTTP. */

const header = "x-sluice-adjusted-parameters";

/** Of these, OpenAI's wire takes all, and Bedrock's none. */
const fields = { frequency_penalty: 0.1, presence_penalty: 0, seed: 7, user: "ann" };
const dropsPenalty = "frequency_penalty=dropped";

const drops = "drop_unsupported: true";
const bedrock = (model: string, settings: string): string =>
  `upstream: bedrock, model: ${model}, bedrock: { ${settings} }`;
const openai = (model: string): string => `upstream: openai, model: ${model}`;

const modelOf = (alias: string, targets: readonly string[], more = ""): string => `
  ${alias}:
    kind: chat
    context_window: 200000
    max_output_tokens: 4000
    targets: [${targets.map((target, index) => `{ ${target}, priority: ${index + 1} }`).join()}]${more}`;

const down = "fault-error-500";
const slow = "fault-slow-first-byte-60000";
const modelSections = [
  modelOf("strict", [bedrock("simulated-chat", "family: claude-4")]),
  modelOf("claude", [bedrock("simulated-chat", `family: claude-4, ${drops}`)]),
  modelOf("claude-4-7", [bedrock("simulated-chat", `family: claude-4-7, ${drops}`)]),
  modelOf("claude-4-5", [bedrock("simulated-chat", "family: claude-4-5")]),
  modelOf("llama", [bedrock("simulated-chat", `family: llama-3, ${drops}`)]),
  modelOf("to-openai", [bedrock(down, `family: claude-4, ${drops}`), openai("sound")]),
  modelOf("to-bedrock", [
    openai(down),
    bedrock(down, `family: claude-4-7, ${drops}`),
    bedrock("sound", `family: claude-4, ${drops}`),
  ]),
  modelOf(
    "hedged-to-openai",
    [bedrock(slow, `family: claude-4, ${drops}`), openai("sound")],
    "\n    hedge_after: 20ms",
  ),
  modelOf(
    "hedged-to-bedrock",
    [openai(slow), bedrock("sound", `family: claude-4, ${drops}`)],
    "\n    hedge_after: 20ms",
  ),
];

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway();
  await gateway.reconfigure({
    upstreams: `
  bedrock: ${simulatorUpstream(gateway.simulator, "bedrock")}
  openai: ${simulatorUpstream(gateway.simulator, "openai")}`,
    models: modelSections.join(""),
  });
});
afterAll(() => gateway[Symbol.asyncDispose]());

async function adjusted(model: string, more: object = fields): Promise<string | null> {
  const messages = [{ role: "user", content: "echo: one two" }];
  const response = await gateway.post("/v1/chat/completions", { model, messages, ...more });
  expect(response.status).toBe(200);
  expect(await response.text()).toContain("one");
  return response.headers.get(header);
}

test.each([false, true])("dropped fields are listed, streamed: %p", async (stream) => {
  expect(await adjusted("claude", { ...fields, stream })).toBe(dropsPenalty);
  expect(await adjusted("claude", { seed: 7, user: "ann", store: false, stream })).toBeNull();
  expect(await adjusted("claude", { frequency_penalty: 0, logprobs: false, stream })).toBeNull();
});

test("every field that a model cannot honour is listed, with its replacement", async () => {
  const schema = { name: "answer", schema: { type: "object" } };
  const tools = [{ type: "function", function: { name: "look" } }];
  for (const [model, more, told] of [
    ["claude", { temperature: 1.5 }, "temperature=1"],
    ["claude", { temperature: 0.5, top_p: 0.5 }, null],
    ["claude-4-5", { temperature: 0.5, top_p: 0.5 }, "top_p=dropped"],
    ["claude-4-5", { temperature: 1, top_p: 0.5 }, null],
    ["claude-4-7", { logprobs: true, temperature: 0.5 }, "logprobs=dropped, temperature=dropped"],
    ["claude", { reasoning_effort: "high", temperature: 0.2 }, "temperature=dropped"],
    ["llama", { stop: "END" }, null],
    ["llama", { tools, tool_choice: "required" }, "tools=dropped"],
    [
      "llama",
      { response_format: { type: "json_schema", json_schema: schema } },
      "response_format=instruction",
    ],
  ] as const) {
    expect([model, more, await adjusted(model, more)]).toEqual([model, more, told]);
  }
});

test("where nothing may be dropped the request is refused", async () => {
  const messages = [{ role: "user", content: "hi" }];
  const response = await gateway.post("/v1/chat/completions", {
    model: "strict",
    messages,
    ...fields,
  });
  const { code, param } = await errorOf(response);
  expect([response.status, code, param, response.headers.get(header)]).toEqual([
    400,
    "unsupported_parameter",
    "frequency_penalty",
    null,
  ]);
});

test.each([
  ["failing over", "to-openai", "to-bedrock"],
  ["a hedge", "hedged-to-openai", "hedged-to-bedrock"],
])("after %s it is told of the attempt that answered", async (_what, toOpenai, toBedrock) => {
  for (const stream of [false, true]) {
    const asked = { ...fields, temperature: 0.5, stream };
    expect(await adjusted(toOpenai, asked)).toBeNull();
    expect(await adjusted(toBedrock, asked)).toBe(dropsPenalty);
  }
});

test("several choices, each a request of its own, are listed once", async () => {
  for (const stream of [false, true]) {
    expect(await adjusted("claude", { ...fields, n: 3, stream })).toBe(dropsPenalty);
  }
});

test("a page in a browser may read it", async () => {
  const messages = [{ role: "user", content: "echo: one" }];
  const response = await gateway.post(
    "/v1/chat/completions",
    { model: "claude", messages, ...fields },
    { headers: { origin: "https://app.example.com" } },
  );
  const exposed = response.headers.get("access-control-expose-headers") ?? "";
  expect(exposed.split(", ")).toContain(header);
});
