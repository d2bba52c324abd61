import { describe, expect, test } from "bun:test";
import type { AnswerBlock, ChatEvent, FinishReason } from "../../domain/chat/answer.ts";
import { isObject, listOf, parseObject } from "../../domain/json-fields.ts";
import { writeCompletion } from "./write-answer.ts";
import { CompletionStreamWriter } from "./write-stream.ts";

const about = { id: "chatcmpl-1", created: 1, model: "m" };
const usage = { inputTokens: 1, outputTokens: 1, cachedInputTokens: 0, reasoningTokens: 0 };

function choiceOf(blocks: readonly AnswerBlock[], finishReason: FinishReason = "stop"): unknown {
  const choice = { index: 0, blocks, finishReason, logprobs: undefined };
  const result = {
    choices: [choice],
    usage: undefined,
    systemFingerprint: undefined,
    serviceTier: undefined,
  };
  const body: unknown = writeCompletion(result, { ...about, usage });
  return isObject(body) ? listOf(body["choices"])?.[0] : undefined;
}

/** The choices of the chunks, in order. */
function chunksOf(events: readonly ChatEvent[]): readonly unknown[] {
  const writer = new CompletionStreamWriter({
    ...about,
    includeUsage: false,
    wantsLogprobs: false,
  });
  return writer
    .write(events)
    .split("\n\n")
    .filter((frame) => frame !== "")
    .map((frame) => listOf(parseObject(frame.slice("data: ".length))?.["choices"])?.[0]);
}

const signed = { type: "reasoning", text: "Hm.", opaque: "s" } as const;
const redacted = { type: "reasoning", text: "", opaque: "r", isRedacted: true } as const;
const format = "anthropic-claude-v1";
const details = [
  { type: "reasoning.text", text: "Hm.", signature: "s", format, index: 0 },
  { type: "reasoning.encrypted", data: "r", format, index: 1 },
];
const call = { type: "tool-call", id: "c", kind: "function", name: "f", arguments: "{}" } as const;

describe("a whole answer", () => {
  test("has its texts joined around calls, and its thoughts in both fields", () => {
    const blocks: readonly AnswerBlock[] = [
      signed,
      { type: "text", text: "a" },
      call,
      redacted,
      { type: "reasoning", text: " So." },
      { type: "text", text: "b" },
    ];
    expect(choiceOf(blocks, "tool_calls")).toEqual({
      index: 0,
      message: {
        role: "assistant",
        content: "ab",
        refusal: null,
        annotations: [],
        reasoning_content: "Hm. So.",
        reasoning_details: details,
        tool_calls: [{ id: "c", type: "function", function: { name: "f", arguments: "{}" } }],
      },
      logprobs: null,
      finish_reason: "tool_calls",
    });
  });

  test("of a thought that only has its signature has no text of thoughts", () => {
    const choice = choiceOf([
      { ...signed, text: "" },
      { type: "text", text: "a" },
    ]);
    expect(choice).not.toHaveProperty("message.reasoning_content");
    expect(choice).toHaveProperty("message.reasoning_details.0.text", "");
  });

  test("without blocks has an empty text", () => {
    expect(choiceOf([])).toMatchObject({ message: { content: "", refusal: null } });
  });

  test("has the call of the deprecated functions in its own field", () => {
    expect(choiceOf([{ ...call, id: undefined }], "function_call")).toMatchObject({
      message: { content: null, function_call: { name: "f", arguments: "{}" } },
    });
  });
});

test("thoughts that are expected back count from 0 in each choice of a stream", () => {
  const blockOf = (choice: number, content: typeof signed | typeof redacted): ChatEvent => ({
    type: "reasoning-block",
    choice,
    content,
  });
  const sent = chunksOf([
    blockOf(0, signed),
    blockOf(1, signed),
    { type: "reasoning-block", choice: 0, content: { type: "reasoning", text: "Plain." } },
    blockOf(0, redacted),
  ]);
  expect(sent.filter((choice) => JSON.stringify(choice).includes("details"))).toMatchObject([
    { index: 0, delta: { reasoning_details: [details[0]] } },
    { index: 1, delta: { reasoning_details: [details[0]] } },
    { index: 0, delta: { reasoning_details: [details[1]] } },
  ]);
});

test("usage at the start of an answer is nothing that chat tells", () => {
  expect(chunksOf([{ type: "usage-start", usage }])).toEqual([]);
});

test.each([
  ["stop", "stop"],
  ["stop_sequence", "stop"],
  ["pause", "stop"],
  ["length", "length"],
  ["window_full", "length"],
  ["content_filter", "content_filter"],
  ["refusal", "content_filter"],
  ["tool_calls", "tool_calls"],
  ["function_call", "function_call"],
] as const)("an end of %s is %s in chat, whole and streamed", (finishReason, word) => {
  expect(choiceOf([], finishReason)).toMatchObject({ finish_reason: word });
  const finish: ChatEvent = { type: "choice-finish", choice: 0, finishReason };
  expect(chunksOf([finish]).at(-1)).toMatchObject({ finish_reason: word });
});
