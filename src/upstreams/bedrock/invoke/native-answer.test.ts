import { expect, test } from "bun:test";
import { UpstreamFailure } from "../../../domain/errors/upstream-failure.ts";
import { decodeConverse } from "../decode/decode-converse.ts";
import { ThoughtSeal } from "../thinking/sent-thoughts.ts";
import { asConverse, eventsOfChunk } from "./native-answer.ts";

const context = {
  toolNames: new Map(),
  textTools: new Set<string>(),
  answerTool: undefined,
  usesFunctions: false,
  stopSequences: [],
  thoughtSeal: new ThoughtSeal("imported"),
  check: undefined,
};

function decode(body: unknown, headers: Record<string, string> = {}) {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const whole = { headers: new Headers(headers), body: new TextEncoder().encode(text) };
  const { choices, usage } = decodeConverse(asConverse(whole), context);
  const [choice] = choices;
  return { text: choice?.content, finish: choice?.finishReason, usage };
}

const countHeaders = {
  "x-amzn-bedrock-input-token-count": "3",
  "x-amzn-bedrock-output-token-count": "2",
};
const counts = { inputTokens: 3, outputTokens: 2 };

test.each([
  [
    "Llama's",
    { generation: "hi", prompt_token_count: 3, generation_token_count: 2, stop_reason: "stop" },
    {},
  ],
  ["Mistral's", { outputs: [{ text: "hi", stop_reason: "stop" }] }, countHeaders],
  [
    "OpenAI's completions",
    {
      choices: [{ index: 0, text: "hi", finish_reason: "stop", stop_reason: 128_009 }],
      usage: { prompt_tokens: 3, completion_tokens: 2 },
    },
    {},
  ],
  [
    "OpenAI's chat",
    {
      choices: [{ message: { role: "assistant", content: "hi" }, finish_reason: "stop" }],
      usage: { prompt_tokens: 3, completion_tokens: 2 },
    },
    {},
  ],
])("an answer in %s form", (_, body, headers) => {
  const { text, finish, usage } = decode(body, headers);
  expect(text).toBe("hi");
  expect(finish).toBe("stop");
  expect(usage).toMatchObject(counts);
});

test.each([
  ["length", "length"],
  ["content_filter", "content_filter"],
  ["stop", "stop"],
] as const)("reason %s", (reason, finish) => {
  expect(decode({ generation: "", stop_reason: reason }).finish).toBe(finish);
  expect(decode({ choices: [{ text: "", finish_reason: reason }] }).finish).toBe(finish);
});

test("the answer of a guardrail is converted", () => {
  const body = {
    generation: "No.",
    stop_reason: "stop",
    "amazon-bedrock-guardrailAction": "INTERVENED",
  };
  expect(decode(body).finish).toBe("content_filter");
});

test.each([
  ["HTML", "<html></html>"],
  ["nothing known", { result: "hi" }],
  ["no text", { generation: null, stop_reason: "stop" }],
  ["no reason", { generation: "hi", stop_reason: null }],
  ["no choice", { choices: [] }],
  ["an exception", { message: "no", __type: "ThrottlingException" }],
])("%s is no answer", (_, body) => {
  expect(() => decode(body)).toThrow(UpstreamFailure);
});

function chunk(native: unknown) {
  return eventsOfChunk({ bytes: Buffer.from(JSON.stringify(native)).toString("base64") });
}

const metrics = {
  "amazon-bedrock-invocationMetrics": { inputTokenCount: 3, outputTokenCount: 2 },
};

test.each([
  [{ generation: "hi", prompt_token_count: 3, generation_token_count: 1, stop_reason: null }],
  [{ outputs: [{ text: "hi", stop_reason: null }] }],
  [{ choices: [{ index: 0, text: "hi", finish_reason: null }] }],
  [{ choices: [{ index: 0, delta: { content: "hi" } }] }],
])("a part of an answer: %#", (native) => {
  expect(chunk(native)).toEqual([["contentBlockDelta", { delta: { text: "hi" } }]]);
});

test.each([
  [{ generation: "", stop_reason: "stop", ...metrics }],
  [{ outputs: [{ text: "", stop_reason: "stop" }], ...metrics }],
  [{ choices: [{ index: 0, delta: {}, finish_reason: "stop" }], ...metrics }],
])("the last part of an answer: %#", (native) => {
  expect(chunk(native)).toEqual([
    ["contentBlockDelta", { delta: { text: "" } }],
    ["messageStop", { stopReason: "end_turn" }],
    ["metadata", { usage: counts }],
  ]);
});

test("metrics may be alone in a chunk, and usage in OpenAI's form", () => {
  const events: ReturnType<typeof chunk> = [
    ["contentBlockDelta", { delta: { text: "" } }],
    ["metadata", { usage: counts }],
  ];
  expect(chunk({ choices: [], ...metrics })).toEqual(events);
  expect(chunk({ choices: [], usage: { prompt_tokens: 3, completion_tokens: 2 } })).toEqual(events);
});

test.each([
  [{}],
  [{ bytes: 7 }],
  [{ bytes: "@@" }],
  [{ bytes: btoa("[1]") }],
  [{ bytes: btoa("{}") }],
])("a chunk that makes no sense: %#", (payload) => {
  expect(eventsOfChunk(payload)).toBeUndefined();
});
