import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import OpenAI from "openai";
import { startSimulator, type Simulator } from "../../simulator/simulator.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";

/** Kind `openai` with `api: responses`, against a server of that wire. */
let provider: Simulator;
let gateway: TestGateway;

beforeAll(async () => {
  provider = startSimulator();
  const alias = (name: string, model: string): string => `
  ${name}:
    kind: chat
    context_window: 1000000
    targets: [{ upstream: local, model: ${model}, openai: { api: responses } }]`;
  gateway = await startGateway({
    sections: {
      upstreams: `{ local: { kind: openai, base_url: "${provider.origin}/v1" } }`,
      models: alias("plain", "model-one") + alias("thinker", "reason-one"),
    },
  });
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await provider[Symbol.asyncDispose]();
});

const client = () =>
  new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: gateway.key, maxRetries: 0 });
const tool = {
  name: "weather",
  parameters: { type: "object", properties: { city: { type: "string" } } },
};
const echo = "echo: one two three";

describe("chat callers", () => {
  test("get an answer, whole and streamed, with its usage", async () => {
    const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: "user", content: echo }];
    const body = { model: "plain", messages };
    const whole = await client().chat.completions.create({ ...body, max_tokens: 300 });
    expect(whole.choices[0]?.message.content).toContain("one two three");
    expect(whole.usage?.completion_tokens).toBeGreaterThan(0);
    const stream = client().chat.completions.stream({
      ...body,
      stream_options: { include_usage: true },
    });
    const streamed = await stream.finalChatCompletion();
    expect(streamed.choices[0]?.message.content).toBe(whole.choices[0]?.message.content ?? "");
    expect(streamed.usage).toEqual(whole.usage);
    const truth = provider.truth.entries.slice(-2);
    const rows = await gateway.usage();
    expect(
      rows
        .slice(0, 2)
        .map(({ inputTokens, outputTokens, usageSource }) => [
          inputTokens,
          outputTokens,
          usageSource,
        ]),
    ).toEqual(
      truth.map(({ promptTokens, completionTokens }) => [
        promptTokens,
        completionTokens,
        "upstream",
      ]),
    );
  });

  test("call tools, and give their results back", async () => {
    const messages: OpenAI.ChatCompletionMessageParam[] = [
      { role: "user", content: "weather in Ulm?" },
    ];
    const body = {
      model: "plain",
      tools: [{ type: "function", function: tool }],
    } satisfies Partial<OpenAI.ChatCompletionCreateParams>;
    const forced = { ...body, messages, tool_choice: "required" } as const;
    const called = await client().chat.completions.create(forced);
    expect(called.choices[0]?.finish_reason).toBe("tool_calls");
    const [choice] = called.choices;
    const calls = choice?.message.tool_calls ?? [];
    expect(calls.length).toBeGreaterThan(0);
    const results = calls.map(
      ({ id }) => ({ role: "tool", tool_call_id: id, content: "sunny" }) as const,
    );
    const said = choice === undefined ? [] : [choice.message];
    const next = await client().chat.completions.create({
      ...body,
      messages: [...messages, ...said, ...results],
      tool_choice: "none",
    });
    expect(next.choices[0]?.finish_reason).toBe("stop");
    const streamed = client().chat.completions.stream(forced);
    expect((await streamed.finalChatCompletion()).choices[0]?.message.tool_calls).toHaveLength(
      calls.length,
    );
  });

  test("end at their stop sequences, and send a cap below the API's", async () => {
    const messages = [{ role: "user", content: echo }] as const;
    const stopped = await client().chat.completions.create({
      model: "plain",
      messages: [...messages],
      stop: "three",
    });
    expect(stopped.choices[0]?.message.content).not.toContain("three");
    expect(stopped.choices[0]?.finish_reason).toBe("stop");
    const response = await gateway.post("/v1/chat/completions", {
      model: "plain",
      messages,
      max_tokens: 2,
    });
    expect(response.headers.get("x-sluice-adjusted-parameters")).toContain("max_tokens=16");
    expect(response.status).toBe(200);
    await response.text();
  });

  test("are told which field the model does not take", async () => {
    const response = await gateway.post("/v1/chat/completions", {
      model: "plain",
      messages: [{ role: "user", content: echo }],
      logit_bias: { "1": 1 },
    });
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: { param: "logit_bias" } });
  });
});

describe("Responses callers", () => {
  test("bring the ciphertext of thoughts back, byte for byte, as the model checks", async () => {
    const input = [{ role: "user", content: "think, then say hello" }] as const;
    const include = ["reasoning.encrypted_content"] as OpenAI.Responses.ResponseIncludable[];
    const body = { model: "thinker", store: false, include } as const;
    const first = await client().responses.create({ ...body, input: [...input] });
    const [thought] = first.output;
    expect(thought?.type).toBe("reasoning");
    expect(thought?.type === "reasoning" ? thought.encrypted_content : "").not.toBe("");
    const output = first.output as OpenAI.Responses.ResponseInputItem[];
    const more = [...input, ...output, { role: "user", content: "and now?" } as const];
    const second = await client().responses.create({ ...body, input: more });
    expect(second.status).toBe("completed");
    const streamed = client().responses.stream({ ...body, input: more });
    expect((await streamed.finalResponse()).output_text).toBe(second.output_text);
    // The model refuses what it did not write.
    expect(provider.truth.entries.slice(-2).map(({ status }) => status)).toEqual([200, 200]);
  });

  test("keep their groups of tools, and get the call of one", async () => {
    const namespace = {
      type: "namespace",
      name: "sky",
      description: "The sky.",
      tools: [{ type: "function", ...tool, strict: false }],
    };
    const response = await gateway.post("/v1/responses", {
      model: "plain",
      input: "weather in Ulm?",
      tools: [namespace],
      tool_choice: "required",
    });
    const { output } = (await response.json()) as {
      output: { type: string; name: string; namespace: string }[];
    };
    expect(output.find(({ type }) => type === "function_call")).toMatchObject({
      name: "weather",
      namespace: "sky",
    });
  });
});

test("Messages callers think and call tools", async () => {
  const response = await gateway.post("/v1/messages", {
    model: "thinker",
    max_tokens: 4_000,
    tools: [{ name: "weather", input_schema: tool.parameters }],
    tool_choice: { type: "any" },
    messages: [{ role: "user", content: "weather in Ulm?" }],
  });
  const text = await response.text();
  expect(text).toContain('"tool_use"');
  expect(response.status).toBe(200);
});

test.each([
  ["context-overflow", 400, "context_length_exceeded"],
  ["bad-request-400", 400, "decimal above maximum value"],
  ["throttle-429-bare", 503, "model_unavailable"],
  ["error-200", 503, "model_unavailable"],
  ["no-done", 503, "model_unavailable"],
  ["html-502", 503, "model_unavailable"],
  ["bad-json", 503, "model_unavailable"],
] as const)("%s of the server is told as elsewhere", async (mode, status, code) => {
  for (const stream of [false, true]) {
    // A stream that is cut after it began has its error within.
    if (stream && (mode === "no-done" || mode === "bad-json")) continue;
    if (!stream && mode === "no-done") continue;
    provider.setFaultPlan([{ mode, times: 9 }]);
    const response = await gateway.post("/v1/chat/completions", {
      model: "plain",
      stream,
      messages: [{ role: "user", content: echo }],
    });
    provider.setFaultPlan([]);
    const text = await response.text();
    expect(response.status).toBe(status);
    expect(text).toContain(code);
  }
});
