import { describe, expect, test } from "bun:test";
import { collectAnswer } from "../../src/upstreams/shared/collect-answer.ts";
import type { ChatEvent } from "../../src/domain/chat/answer.ts";
import { UpstreamFailure } from "../../src/domain/errors/upstream-failure.ts";
import { messagesWire } from "../../src/upstreams/shared/messages/messages-codec.ts";
import { decodeAnswer, EventDecoder } from "../../src/upstreams/shared/answer-codec.ts";
import {
  classifyError,
  createReadFailure,
} from "../../src/upstreams/shared/openai/read-failure.ts";
import { contextOf } from "../support/bedrock-frames.ts";
import { decoderLimits } from "../support/answer-decoding.ts";

const wire = messagesWire(contextOf(), () => undefined);

const frame = (event: object): string => {
  const type = "type" in event ? String(event.type) : "x";
  return `event: ${type}\ndata: ${JSON.stringify(event)}\n\n`;
};
const start = (usage: object = { input_tokens: 10, output_tokens: 1 }) => ({
  type: "message_start",
  message: { id: "msg_1", usage },
});
const block = (index: number, content: object, ...deltas: object[]) => [
  { type: "content_block_start", index, content_block: content },
  ...deltas.map((delta) => ({ type: "content_block_delta", index, delta })),
  { type: "content_block_stop", index },
];
const stop = (reason: string, usage: object = { output_tokens: 7 }) => [
  { type: "message_delta", delta: { stop_reason: reason, stop_sequence: null }, usage },
  { type: "message_stop" },
];
const said = (text: string) => ({ type: "text_delta", text });
const words = { type: "text", text: "" };

function decode(events: readonly object[], pieceBytes = 0) {
  const bytes = new TextEncoder().encode(events.map(frame).join(""));
  const size = pieceBytes === 0 ? bytes.length : pieceBytes;
  const decoder = new EventDecoder(wire, { ...decoderLimits, malformedEvents: 1 });
  const found: ChatEvent[] = [];
  for (let at = 0; at < bytes.length; at += size) {
    found.push(...decoder.push(bytes.subarray(at, at + size)));
  }
  if (!decoder.isDone) found.push(...decoder.end());
  return { events: found, failure: decoder.failure?.details.kind };
}

const content = [
  start({
    input_tokens: 3,
    cache_read_input_tokens: 4,
    cache_creation_input_tokens: 5,
    cache_creation: { ephemeral_5m_input_tokens: 2, ephemeral_1h_input_tokens: 3 },
    service_tier: "priority",
  }),
  { type: "ping" },
  ...block(
    0,
    { type: "thinking", thinking: "", signature: "" },
    { type: "thinking_delta", thinking: "Hm" },
    { type: "thinking_delta", thinking: "m." },
    { type: "signature_delta", signature: "c2ln" },
  ),
  ...block(1, { type: "redacted_thinking", data: "eHl6" }),
  ...block(2, words, said("I "), { type: "citations_delta", citation: { a: 1 } }, said("look.")),
  ...block(
    3,
    { type: "server_tool_use", id: "srv", name: "web_search", input: {} },
    { type: "input_json_delta", partial_json: '{"query":"x"}' },
  ),
  ...block(4, { type: "web_search_tool_result", tool_use_id: "srv", content: [] }),
  ...block(
    5,
    { type: "tool_use", id: "toolu_1", name: "look", input: {} },
    { type: "input_json_delta", partial_json: "" },
    { type: "input_json_delta", partial_json: '{"at":12345678901' },
    { type: "input_json_delta", partial_json: "234567890}" },
  ),
  ...block(6, { type: "tool_use", id: "toolu_2", name: "now", input: {} }),
  ...block(7, { type: "tool_use", id: "toolu_3", name: "all", input: { a: 1 } }),
  { type: "something_new", index: 9 },
  ...stop("tool_use", { output_tokens: 9, output_tokens_details: { thinking_tokens: 2 } }),
];

const usage = {
  inputTokens: 12,
  outputTokens: 9,
  cachedInputTokens: 4,
  cacheWriteTokens: 5,
  cacheWrite1hTokens: 3,
  serviceTier: "priority",
  reasoningTokens: 2,
};

test("a stream is read in order, whatever its pieces", () => {
  const { events, failure } = decode(content);
  expect(failure).toBeUndefined();
  for (const size of [1, 7, 64]) expect(decode(content, size)).toEqual({ events, failure });
  expect(events[0]).toEqual({
    type: "usage-start",
    usage: { ...usage, outputTokens: 0, reasoningTokens: 0 },
  });
  const answer = collectAnswer(events);
  expect(answer.usage).toEqual(usage);
  expect<unknown>(answer.choices[0]?.blocks).toEqual([
    { type: "reasoning", text: "Hmm.", opaque: "c2ln" },
    { type: "reasoning", text: "", opaque: "eHl6", isRedacted: true },
    { type: "text", text: "I look.", citations: [{ a: 1 }] },
    call("toolu_1", "look", '{"at":12345678901234567890}'),
    call("toolu_2", "now", "{}"),
    call("toolu_3", "all", '{"a":1}'),
  ]);
  expect(answer.choices[0]?.finishReason).toBe("tool_calls");
});

function call(id: string, name: string, text: string): object {
  return { type: "tool-call", id, kind: "function", name, arguments: text };
}

test("a whole answer says the same, in place of a stream too", () => {
  const body = JSON.stringify({
    type: "message",
    content: [
      { type: "thinking", thinking: "Hmm.", signature: "c2ln" },
      { type: "redacted_thinking", data: "eHl6" },
      { type: "text", text: "I look.", citations: [{ a: 1 }] },
      { type: "server_tool_use", id: "srv", name: "web_search", input: {} },
      { type: "web_search_tool_result", tool_use_id: "srv", content: [] },
      { type: "tool_use", id: "toolu_1", name: "look", input: { at: "AT" } },
      { type: "tool_use", id: "toolu_2", name: "now", input: {} },
      { type: "tool_use", id: "toolu_3", name: "all", input: { a: 1 } },
    ],
    stop_reason: "tool_use",
    usage: {
      input_tokens: 3,
      cache_read_input_tokens: 4,
      cache_creation: { ephemeral_5m_input_tokens: 2, ephemeral_1h_input_tokens: 3 },
      output_tokens: 9,
      output_tokens_details: { thinking_tokens: 2 },
      service_tier: "priority",
    },
  }).replace('"AT"', "12345678901234567890");
  const bytes = new TextEncoder().encode(body);
  const whole = decodeAnswer(bytes, wire);
  const streamed = collectAnswer(decode(content).events);
  expect(whole).toEqual(streamed);
  const decoder = new EventDecoder(wire, decoderLimits);
  expect(collectAnswer([...decoder.push(bytes), ...decoder.end()])).toEqual(whole);
  const stream = new TextEncoder().encode(content.map(frame).join(""));
  expect(decodeAnswer(stream, wire)).toEqual(whole);
});

test("words without the beginning of their block are read, and input without is broken", () => {
  const bare = (delta: object) => ({ type: "content_block_delta", index: 0, delta });
  const { events } = decode([start(), bare(said("a")), bare(said("b")), ...stop("end_turn")]);
  expect(collectAnswer(events).choices[0]?.blocks).toEqual([{ type: "text", text: "ab" }]);
  const input = { type: "input_json_delta", partial_json: "{}" };
  expect(decode([start(), bare(input), ...stop("tool_use")]).failure).toBe("broken-answer");
});

test.each([
  ["end_turn", "stop"],
  ["max_tokens", "length"],
  ["model_context_window_exceeded", "window_full"],
  ["refusal", "refusal"],
  ["pause_turn", "pause"],
  ["stop_sequence", "stop_sequence"],
  ["something_new", "stop"],
])("%s is told as %s", (word, reason) => {
  const { events } = decode([start(), ...block(0, words, said("a")), ...stop(word)]);
  expect(collectAnswer(events).choices[0]?.finishReason).toBe(reason as "stop");
});

describe("a stream that is not whole", () => {
  const begun = [start(), ...block(0, words, said("a"))];
  test.each([
    ["ends before its stop reason", begun, "broken-answer"],
    [
      "has an error before any content",
      [start(), { type: "error", error: { type: "overloaded_error", message: "Overloaded" } }],
      "overloaded",
    ],
    ["has a reason of an interruption", [...begun, ...stop("error")], "broken-answer"],
    ["has a nameless call", [start(), ...block(0, { type: "tool_use", id: "x" })], "broken-answer"],
  ])("%s", (_what, events, kind) => {
    const { events: found, failure } = decode(events);
    expect(failure).toBe(kind as "overloaded");
    expect(found.some(({ type }) => type === "choice-finish")).toBe(false);
  });

  test("has no event before its error, so that another target can answer", () => {
    const error = { type: "error", error: { type: "api_error", message: "x" } };
    expect(decode([start(), { type: "ping" }, error]).events).toEqual([]);
  });

  test("skips one malformed event in words, and none in a call", () => {
    const bad = { type: "content_block_delta", index: 0, delta: { type: "text_delta" } };
    const text = [start(), ...block(0, words, said("a")).slice(0, 2), bad, ...stop("end_turn")];
    expect(decode(text).failure).toBeUndefined();
    const tool = block(0, { type: "tool_use", id: "a", name: "b" }).slice(0, 1);
    const broken = { ...bad, delta: { type: "input_json_delta" } };
    expect(decode([start(), ...tool, broken, ...stop("tool_use")]).failure).toBe("broken-answer");
  });
});

test.each([
  [
    400,
    "invalid_request_error",
    "prompt is too long: 210000 tokens > 200000 maximum",
    "context-overflow",
  ],
  [400, "invalid_request_error", "messages.0: bad", "invalid-request"],
  [
    400,
    "invalid_request_error",
    "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing.",
    "account-blocked",
  ],
  [400, "invalid_request_error", "Output blocked by content filtering policy", "content-refused"],
  [401, "authentication_error", "invalid x-api-key", "bad-credential"],
  [402, "billing_error", "x", "account-blocked"],
  [403, "permission_error", "x", "bad-credential"],
  [404, "not_found_error", "model: x", "unknown-model"],
  [413, "request_too_large", "Request exceeds the maximum size", "invalid-request"],
  [429, "rate_limit_error", "x", "throttled"],
  [500, "api_error", "Internal server error", "unavailable"],
  [504, "timeout_error", "x", "timed-out"],
  [529, "overloaded_error", "Overloaded", "overloaded"],
  [529, "something_new", "x", "overloaded"],
] as const)("%d %s %s is %s", (status, type, message, kind) => {
  expect(classifyError(status, { type, message }).kind).toBe(kind);
});

test("a spending limit is not waited for, and retry-after is", () => {
  const read = createReadFailure({ now: () => 0 } as never);
  const error = { type: "rate_limit_error", message: "x" };
  const answer = (body: object, headers = {}) =>
    read({
      status: 429,
      headers: new Headers(headers),
      body: new TextEncoder().encode(JSON.stringify(body)),
    });
  const details = { error_code: "enforced_spend_limit_reached" };
  expect(answer({ error: { ...error, details } }).kind).toBe("account-blocked");
  expect(answer({ error }, { "retry-after": "7" })).toMatchObject({
    kind: "throttled",
    retryAfterMs: 7_000,
  });
});

test.each(["", "{}", "[]", '{"content":[{"type":"text"}],"stop_reason":"end_turn"}', "<html>"])(
  "%j is no answer",
  (text) => {
    const body = new TextEncoder().encode(text);
    expect(() => decodeAnswer(body, wire)).toThrow(UpstreamFailure);
  },
);
