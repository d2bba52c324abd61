import { expect, test } from "bun:test";
import type { AnswerBlock, FinishReason } from "../../domain/chat/answer.ts";
import type { TokenUsage } from "../../domain/usage/usage.ts";
import { writeMessage } from "./write-answer.ts";

const usage: TokenUsage = {
  inputTokens: 10,
  outputTokens: 5,
  cachedInputTokens: 0,
  reasoningTokens: 0,
};

function write(blocks: readonly AnswerBlock[], finishReason: FinishReason = "stop") {
  const choices = [{ index: 0, blocks, finishReason, logprobs: undefined }];
  const answer = { choices, usage, systemFingerprint: undefined, serviceTier: "default" };
  return writeMessage(answer, { id: "msg_1", model: "claude", usage });
}

function call(text: string, more: object = {}): AnswerBlock {
  return { type: "tool-call", id: "t", kind: "function", name: "f", arguments: text, ...more };
}

test("a whole message has its blocks in order", () => {
  const blocks: readonly AnswerBlock[] = [
    { type: "reasoning", text: "hm", opaque: "s" },
    { type: "reasoning", text: "", opaque: "xyz", isRedacted: true },
    { type: "reasoning", text: "", opaque: "empty" },
    { type: "text", text: "a" },
    { type: "text", text: "" },
    { type: "text", text: "b" },
    call('{"x":1}'),
  ];
  expect(write(blocks, "tool_calls")).toEqual({
    id: "msg_1",
    type: "message",
    role: "assistant",
    model: "claude",
    content: [
      { type: "thinking", thinking: "hm", signature: "s" },
      { type: "redacted_thinking", data: "xyz" },
      { type: "thinking", thinking: "", signature: "empty" },
      { type: "text", text: "a" },
      { type: "text", text: "b" },
      { type: "tool_use", id: "t", name: "f", input: { x: 1 } },
    ],
    stop_reason: "tool_use",
    stop_sequence: null,
    usage: {
      input_tokens: 10,
      cache_creation_input_tokens: 0,
      cache_read_input_tokens: 0,
      output_tokens: 5,
      service_tier: "standard",
    },
  });
});

test("an answer of nothing is a message without content", () => {
  expect(write([])).toMatchObject({ content: [], stop_reason: "end_turn" });
  expect(write([{ type: "text", text: "" }])).toMatchObject({ content: [] });
});

test.each([
  ["", {}],
  ["{}", {}],
  ['{"a":', { INVALID_JSON: '{"a":' }],
  ["[1]", { INVALID_JSON: "[1]" }],
  ["null", { INVALID_JSON: "null" }],
] as const)("the input of a call is an object, also for %p", (text, input) => {
  expect(write([call(text)])).toMatchObject({ content: [{ input }], stop_reason: "tool_use" });
});

test("integers of 64 bits in the input of a call stay exact, and no depth is too much", () => {
  const text = '{"id":1234567890123456789}';
  expect(JSON.stringify(write([call(text)]))).toContain(`"input":${text}`);
  const deep = `{"a":${"[".repeat(100_000)}${"]".repeat(100_000)}}`;
  expect(JSON.stringify(write([call(deep)]))).toContain("INVALID_JSON");
});

test("the text for a tool that takes no JSON stands in an object", () => {
  const content = [{ type: "tool_use", input: { input: "ls -l" } }];
  expect(write([call("ls -l", { kind: "custom" })])).toMatchObject({ content });
});

test("a call without an id gets one", () => {
  const content = [{ type: "text" }, { id: "toolu_1_1" }];
  expect(write([{ type: "text", text: "a" }, call("{}", { id: undefined })])).toMatchObject({
    content,
  });
});

test("a refusal in words is text, and the reason says what it is", () => {
  expect(write([{ type: "refusal", text: "No." }])).toMatchObject({
    content: [{ type: "text", text: "No." }],
    stop_reason: "refusal",
    stop_details: { type: "refusal" },
  });
});
