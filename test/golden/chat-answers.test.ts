import { afterAll, beforeAll, expect, test } from "bun:test";
import { chatOf } from "../support/bodies.ts";
import type { TestGateway } from "../support/gateway.ts";
import { requests, startGoldenGateway } from "./golden-gateway.ts";
import { normalise } from "./normalise.ts";

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGoldenGateway();
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
});

async function answerTo(request: object): Promise<string> {
  const response = await gateway.post("/v1/chat/completions", request);
  expect(response.status).toBe(200);
  return normalise(await response.text());
}

const head = '{"id":"ID","object":"chat.completion","created":0,"model":"chat-model","choices":';
const usage =
  '"usage":{"prompt_tokens":9,"completion_tokens":9,"total_tokens":9,' +
  '"prompt_tokens_details":{"cached_tokens":0,"audio_tokens":0},' +
  '"completion_tokens_details":{"reasoning_tokens":0,"audio_tokens":0,' +
  '"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}';
const tail = `,${usage},"service_tier":"default","system_fingerprint":"fp_simulator"}`;

/** The one choice of an answer as it must stand in the body. */
function choice(message: string, finishReason: string, logprobs = "null"): string {
  return (
    `[{"index":0,"message":{"role":"assistant",${message}},"logprobs":${logprobs},` +
    `"finish_reason":"${finishReason}"}]`
  );
}

const call = (name: string): string =>
  `{"id":"CALL","type":"function","function":{"name":"${name}",` +
  `"arguments":"{\\"city\\":\\"Rome\\"}"}}`;

test("a text answer has OpenAI's fields in OpenAI's order", async () => {
  const message = '"content":"Hello there","refusal":null,"annotations":[]';
  expect(await answerTo(requests.text)).toBe(head + choice(message, "stop") + tail);
});

test("an answer with one tool call has null content and the call", async () => {
  const message = `"content":null,"refusal":null,"annotations":[],"tool_calls":[${call("get_weather")}]`;
  expect(await answerTo(requests.tool)).toBe(head + choice(message, "tool_calls") + tail);
});

test("an answer with two tool calls has both, in order, with ids of their own", async () => {
  const calls = `${call("get_weather")},${call("get_population")}`;
  const message = `"content":null,"refusal":null,"annotations":[],"tool_calls":[${calls}]`;
  expect(await answerTo(requests.tools)).toBe(head + choice(message, "tool_calls") + tail);
  const body = await chatOf(await gateway.post("/v1/chat/completions", requests.tools));
  const ids = body.choices[0]?.message.tool_calls?.map(({ id }) => id) ?? [];
  expect(new Set(ids).size).toBe(2);
});

test("a refusal has null content and a text in refusal", async () => {
  const message =
    `"content":null,"refusal":"I'm sorry, but I can't help with that request.",` +
    `"annotations":[]`;
  expect(await answerTo(requests.refusal)).toBe(head + choice(message, "stop") + tail);
});

test("an answer that reached its cap says so in its finish reason only", async () => {
  const message = '"content":"one two","refusal":null,"annotations":[]';
  expect(await answerTo(requests.length)).toBe(head + choice(message, "length") + tail);
});

test("two choices are numbered and complete", async () => {
  const one = choice('"content":"Hi","refusal":null,"annotations":[]', "stop").slice(1, -1);
  const two = one.replace('"index":0', '"index":1');
  expect(await answerTo(requests.severalChoices)).toBe(`${head}[${one},${two}]${tail}`);
});

test("the deprecated functions are answered with a function_call", async () => {
  const message =
    '"content":null,"refusal":null,"annotations":[],' +
    `"function_call":{"name":"get_weather","arguments":"{\\"city\\":\\"Rome\\"}"}`;
  expect(await answerTo(requests.functionCall)).toBe(
    head + choice(message, "function_call") + tail,
  );
});

test("a custom tool is called with its input as text", async () => {
  const calls = '[{"id":"CALL","type":"custom","custom":{"name":"shell","input":"shell"}}]';
  const message = `"content":null,"refusal":null,"annotations":[],"tool_calls":${calls}`;
  expect(await answerTo(requests.customTool)).toBe(head + choice(message, "tool_calls") + tail);
});

test("log probabilities are listed token by token, with the bytes of each", async () => {
  const answer = await answerTo(requests.logprobs);
  const entry = /"logprobs":\{"content":\[(.*)\],"refusal":null\},"finish_reason":"stop"/.exec(
    answer,
  )?.[1];
  expect(entry).toMatch(
    /^\{"token":"Hi","logprob":-[0-9.e-]+,"bytes":\[72,105\],"top_logprobs":\[\{"token":"Hi","logprob":-[0-9.e-]+,"bytes":\[72,105\]\}\]\}$/,
  );
});

test("log probabilities of a refusal stand in their refusal field", async () => {
  const { logprobs, message } =
    (await chatOf(await gateway.post("/v1/chat/completions", requests.refusalLogprobs)))
      .choices[0] ?? {};
  expect(logprobs?.content).toBeNull();
  expect(logprobs?.refusal?.map(({ token }) => token).join("")).toBe(message?.refusal ?? "none");
});

test("thoughts stand in reasoning_content beside the answer and are counted", async () => {
  const body = await chatOf(await gateway.post("/v1/chat/completions", requests.reasoning));
  const message = body.choices[0]?.message;
  expect(Object.keys(message ?? {})).toEqual([
    "role",
    "content",
    "refusal",
    "annotations",
    "reasoning_content",
  ]);
  expect(message?.content).toBe("Hi");
  expect(body.usage?.completion_tokens_details?.reasoning_tokens).toBeGreaterThan(0);
});

test("the total of an answer is the sum of its parts", async () => {
  const body = await chatOf(await gateway.post("/v1/chat/completions", requests.text));
  const { prompt_tokens: input, completion_tokens: output, total_tokens } = body.usage ?? {};
  expect(output).toBe(2);
  expect(total_tokens).toBe((input ?? 0) + 2);
});

test("an id is new for every answer and the time of creation is in whole seconds", async () => {
  const before = Math.floor(Date.now() / 1000);
  const first = await chatOf(await gateway.post("/v1/chat/completions", requests.text));
  const second = await chatOf(await gateway.post("/v1/chat/completions", requests.text));
  expect(first.id).not.toBe(second.id);
  expect(Number.isInteger(first.created)).toBe(true);
  expect(first.created).toBeGreaterThanOrEqual(before);
  expect(first.created).toBeLessThanOrEqual(Math.ceil(Date.now() / 1000));
});
