import { afterEach, describe, expect, test } from "bun:test";
import { startGateway, type TestGateway } from "../support/gateway.ts";

const stopReasons = new Map([
  ["cut", "max_tokens"],
  ["stopped", "stop_sequence"],
]);

/** A provider that answers with each of these texts in turn, and then with the last one. */
function startProvider(...texts: string[]) {
  let asked = 0;
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch() {
      const text = texts[Math.min(asked, texts.length - 1)] ?? "";
      asked += 1;
      return Response.json({
        output: { message: { role: "assistant", content: [{ text }] } },
        stopReason: stopReasons.get(text) ?? "end_turn",
        usage: { inputTokens: 9, outputTokens: 5, totalTokens: 14 },
      });
    },
  });
  return { url: `http://127.0.0.1:${server.port}`, asked: () => asked, server };
}

const opened: AsyncDisposable[] = [];
afterEach(async () => {
  for (const one of opened.splice(0)) await one[Symbol.asyncDispose]();
});

async function gatewayAt(endpoint: string, validate = true): Promise<TestGateway> {
  const gateway = await startGateway({
    kind: "bedrock",
    sections: {
      upstreams: `
  provider: { kind: bedrock, region: us-east-1, endpoint: "${endpoint}", api_key: "k" }`,
      models: `
  chat-model:
    kind: chat
    context_window: 32000
    targets:
      - upstream: provider
        model: us.anthropic.claude-sonnet-4-5-20250929-v1:0
        bedrock: { validate_answers: ${validate} }`,
    },
  });
  opened.push(gateway);
  return gateway;
}

async function asking(texts: readonly string[], more: object, validate = true) {
  const provider = startProvider(...texts);
  opened.push({ [Symbol.asyncDispose]: async () => provider.server.stop(true) });
  const gateway = await gatewayAt(provider.url, validate);
  const response = await gateway.post("/v1/chat/completions", {
    model: "chat-model",
    messages: [{ role: "user", content: "Rate it in JSON." }],
    ...more,
  });
  const body = (await response.json()) as {
    choices?: { message: { content: string }; finish_reason: string }[];
    error?: unknown;
  };
  return {
    status: response.status,
    retry: response.headers.get("x-should-retry"),
    content: body.choices?.[0]?.message.content,
    error: body.error,
    asked: provider.asked(),
    usage: await gateway.usage(),
  };
}

const anObject = { response_format: { type: "json_object" } };
const rating = {
  type: "object",
  properties: { stars: { type: "integer", maximum: 5 } },
  required: ["stars"],
  additionalProperties: false,
};
const bySchema = {
  response_format: { type: "json_schema", json_schema: { name: "rating", schema: rating } },
};

describe("an answer that is checked", () => {
  test("is given when it matches", async () => {
    expect(await asking(['{"stars":5}'], bySchema)).toMatchObject({
      status: 200,
      content: '{"stars":5}',
      asked: 1,
    });
    expect(await asking([' {"a":[1]}\n'], anObject)).toMatchObject({ status: 200, asked: 1 });
  });

  test("is asked for once more when it does not", async () => {
    const answer = await asking(['{"stars":6}', '{"stars":4}'], bySchema);
    expect(answer).toMatchObject({ status: 200, content: '{"stars":4}', asked: 2 });
    const words = await asking(["Sure: {}", "{}"], anObject);
    expect(words).toMatchObject({ status: 200, content: "{}", asked: 2 });
  });

  test("is an error that says why when it never does", async () => {
    expect(await asking(['{"stars":6}'], bySchema)).toMatchObject({
      status: 502,
      retry: "false",
      content: undefined,
      asked: 2,
      error: {
        message:
          "The model's answer does not match response_format: it fails the " +
          "JSON schema's 'maximum'. Describe the format in the messages too, or use a simpler one.",
        type: "server_error",
        param: "response_format",
        code: "answer_mismatch",
      },
    });
    expect(await asking(["[1]"], anObject)).toMatchObject({
      status: 502,
      error: { message: expect.stringContaining("it is not a JSON object") },
    });
  });

  test("is the caller's 400 where the schema takes too long to check, and asked for once", async () => {
    const endless = { name: "endless", schema: { type: "object", allOf: [{ $ref: "#" }] } };
    const format = { response_format: { type: "json_schema", json_schema: endless } };
    expect(await asking(["{}"], format)).toMatchObject({
      status: 400,
      asked: 1,
      error: {
        message:
          "Checking an answer against the JSON schema takes too many steps. Send a simpler schema.",
        param: "response_format",
      },
      usage: [{ outputTokens: 5, usageSource: "upstream", outcome: "failed" }],
    });
  });

  test("is not judged when it was cut, or when no form was asked for", async () => {
    expect(await asking(["cut"], anObject)).toMatchObject({
      status: 200,
      content: "cut",
      asked: 1,
    });
    expect(await asking(["stopped"], anObject)).toMatchObject({ status: 200, asked: 1 });
    expect(await asking(["words"], {})).toMatchObject({ status: 200, asked: 1 });
  });

  test("is counted by the provider's word, each time, when it never matches", async () => {
    const counted = {
      inputTokens: 2 * 9,
      outputTokens: 2 * 5,
      usageSource: "upstream",
      outcome: "failed",
      status: 502,
    };
    const { usage } = await asking(["[1]"], anObject);
    expect(usage).toMatchObject([counted]);
    const { usage: ofChoices } = await asking(["[1]"], { ...anObject, n: 2 });
    expect(ofChoices).toMatchObject([{ outcome: "failed", usageSource: "upstream" }]);
    const { usage: second } = await asking(["[1]", "{}"], anObject);
    expect(second).toMatchObject([{ outcome: "completed", inputTokens: 2 * 9 }]);
  });

  test("is not judged where the operator asks for no checks", async () => {
    expect(await asking(["words"], anObject, false)).toMatchObject({
      status: 200,
      content: "words",
      asked: 1,
    });
  });
});

test("a stream ends with an error where its answer does not match", async () => {
  const models = (validate: boolean) => `
  chat-model:
    kind: chat
    context_window: 32000
    targets:
      - upstream: simulator
        model: us.anthropic.claude-sonnet-4-5-20250929-v1:0
        bedrock: { validate_answers: ${validate} }`;
  const gateway = await startGateway({ kind: "bedrock", sections: { models: models(true) } });
  opened.push(gateway);
  const read = async (content: string): Promise<string> => {
    const messages = [{ role: "user", content }];
    const body = { model: "chat-model", messages, stream: true, ...bySchema };
    return (await gateway.post("/v1/chat/completions", body)).text();
  };
  const bad = await read('echo: {"stars":6}');
  expect(bad).toContain('"code":"answer_mismatch"');
  expect(bad).not.toContain("[DONE]");
  expect(bad).not.toContain('"finish_reason":"stop"');
  expect(await gateway.usage()).toMatchObject([{ outcome: "failed", usageSource: "upstream" }]);
  const good = await read('echo: {"stars":4}');
  expect(good).toEndWith("data: [DONE]\n\n");
  await gateway.reconfigure({ models: models(false) });
  expect(await read('echo: {"stars":6}')).toEndWith("data: [DONE]\n\n");
});
