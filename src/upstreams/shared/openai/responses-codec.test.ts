/**
 * Streams of Responses. Those without a source are written from OpenAI's OpenAPI document; each other
 * one is as the report that is named describes what servers send.
 */
import { describe, expect, test } from "bun:test";
import type { ChatEvent } from "../../../domain/chat/answer.ts";
import type { Conversation } from "../../../domain/chat/conversation.ts";
import { UpstreamFailure } from "../../../domain/errors/upstream-failure.ts";
import { readChatRequest } from "../../../wires/chat/read-request.ts";
import { answerServices, decoderLimits } from "../../../../test/support/answer-decoding.ts";
import type { WholeAnswer } from "../../adapter.ts";
import { createResponsesCodec } from "./responses-codec.ts";

const request = { url: "http://localhost", method: "POST", headers: {}, body: "" } as const;
const codec = createResponsesCodec(() => ({ request }), answerServices("call_new"));
const hello = (fields: object = {}): Conversation =>
  readChatRequest({ model: "m", messages: [{ role: "user", content: "hello" }], ...fields });

interface Decoded {
  readonly events: readonly ChatEvent[];
  readonly failure: UpstreamFailure | undefined;
  readonly isDone: boolean;
}

function decodeAll(text: string, pieceLength: number, asked = hello()): Decoded {
  const decoder = codec.encodeStream(asked, "m").newDecoder(decoderLimits);
  const bytes = new TextEncoder().encode(text);
  const events: ChatEvent[] = [];
  for (let at = 0; at < bytes.length && !decoder.isDone; at += pieceLength) {
    events.push(...decoder.push(bytes.subarray(at, at + pieceLength)));
  }
  if (!decoder.isDone) events.push(...decoder.end());
  return { events, failure: decoder.failure, isDone: decoder.isDone };
}
const decode = (text: string, asked?: Conversation): Decoded =>
  decodeAll(text, text.length * 4, asked);

function frame(type: string, fields: object): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;
}
const added = (index: number, item: object): string =>
  frame("response.output_item.added", { output_index: index, item });
const done = (index: number, item: object): string =>
  frame("response.output_item.done", { output_index: index, item });
const delta = (index: number, text: string, name = "output_text", fields: object = {}): string =>
  frame(`response.${name}.delta`, {
    output_index: index,
    content_index: 0,
    delta: text,
    ...fields,
  });
const usage = {
  input_tokens: 9,
  input_tokens_details: { cached_tokens: 4, cache_write_tokens: 1 },
  output_tokens: 7,
  output_tokens_details: { reasoning_tokens: 2 },
  total_tokens: 16,
};
const ended = (type: string, fields: object = {}): string =>
  frame(`response.${type}`, {
    response: { id: "resp_1", status: type, usage, output: [], ...fields },
  });
const message = (text: string): object => ({
  type: "message",
  id: "msg_1",
  role: "assistant",
  content: [{ type: "output_text", text, annotations: [] }],
});
const call = (fields: object): object => ({
  type: "function_call",
  id: "fc_1",
  name: "f",
  ...fields,
});

/** What the caller gets. */
function summaryOf({ events, failure }: Decoded) {
  const text = (type: ChatEvent["type"]) =>
    events.map((event) => (event.type === type && "text" in event ? event.text : "")).join("");
  const calls: { id: string; kind: string; name: string; input: string }[] = [];
  for (const event of events) {
    if (event.type === "tool-call-start") {
      calls.push({ id: event.id, kind: event.kind, name: event.name, input: "" });
    }
    const open = event.type === "tool-call-delta" ? calls[event.call] : undefined;
    if (open !== undefined && event.type === "tool-call-delta") open.input += event.arguments;
  }
  const finish = events.find(({ type }) => type === "choice-finish");
  const report = events.find(({ type }) => type === "usage-report");
  return {
    text: text("text-delta"),
    refusal: text("refusal-delta"),
    thoughts: text("reasoning-delta"),
    calls,
    sealed: events.flatMap((each) => (each.type === "reasoning-block" ? each.content.opaque : [])),
    finish: finish?.type === "choice-finish" ? finish.finishReason : undefined,
    usage: report?.type === "usage-report" ? report.usage : undefined,
    failure: failure?.details.kind,
  };
}

const counted = {
  inputTokens: 9,
  outputTokens: 7,
  cachedInputTokens: 4,
  cacheWriteTokens: 1,
  reasoningTokens: 2,
};
const nothing = { text: "", refusal: "", thoughts: "", calls: [], sealed: [], failure: undefined };

const whole =
  frame("response.created", { response: { status: "in_progress" }, sequence_number: 0 }) +
  frame("response.in_progress", { response: { status: "in_progress" } }) +
  added(0, { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "early" }) +
  frame("response.reasoning_summary_part.added", { output_index: 0, summary_index: 0 }) +
  delta(0, "Hm.", "reasoning_summary_text", { summary_index: 0, content_index: undefined }) +
  delta(0, "Well.", "reasoning_summary_text", { summary_index: 1, content_index: undefined }) +
  done(0, {
    type: "reasoning",
    id: "rs_1",
    summary: [{ text: "Hm." }, { text: "Well." }],
    encrypted_content: "gAAAA\u00e9==",
  }) +
  added(1, { ...message(""), content: [] }) +
  frame("response.content_part.added", { output_index: 1, content_index: 0 }) +
  delta(1, "Grüße, ") +
  ": a comment\n\n" +
  delta(1, "世界") +
  frame("response.output_text.done", { output_index: 1, content_index: 0, text: "Grüße, 世界" }) +
  done(1, message("Grüße, 世界")) +
  added(2, call({ call_id: "call_a", arguments: "" })) +
  delta(2, '{"x":', "function_call_arguments") +
  added(3, { type: "custom_tool_call", call_id: "call_b", name: "patch", input: "" }) +
  delta(3, "*** Be", "custom_tool_call_input") +
  delta(2, "1}", "function_call_arguments") +
  delta(3, "gin", "custom_tool_call_input") +
  done(2, call({ call_id: "call_a", arguments: '{"x":1}' })) +
  done(3, { type: "custom_tool_call", call_id: "call_b", name: "patch", input: "*** Begin" });

const answer = {
  ...nothing,
  thoughts: "Hm.\n\nWell.",
  sealed: ["gAAAA\u00e9=="],
  text: "Grüße, 世界",
  calls: [
    { id: "call_a", kind: "function", name: "f", input: '{"x":1}' },
    { id: "call_b", kind: "custom", name: "patch", input: "*** Begin" },
  ],
  finish: "tool_calls",
  usage: counted,
};

describe("a stream of a response", () => {
  test("is the same however its bytes are split, and ends with the response", () => {
    for (const length of [1, 7, 4096]) {
      const decoded = decodeAll(whole + ended("completed", { service_tier: "priority" }), length);
      const used = { ...counted, serviceTier: "priority" };
      expect(summaryOf(decoded)).toEqual({ ...answer, usage: used } as never);
      expect(decoded.isDone).toBe(true);
      expect(decoded.events).toContainEqual({
        type: "answer-start",
        systemFingerprint: undefined,
        serviceTier: "priority",
      });
    }
  });

  test.each([
    ["rotated ids: vercel/ai#18548", whole.replaceAll(/"id":"(?:rs|msg|fc)_1"/g, '"id":"o"')],
    [
      "a keepalive event: openai/openai-node#1965",
      whole.replaceAll(
        "event: response.output_text",
        'event: keepalive\ndata: {"type":"keepalive"}\n\n$&',
      ),
    ],
    ["CRLF", whole.replaceAll("\n", "\r\n")],
    ["events of OpenAI's own tools", frame("response.web_search_call.searching", {}) + whole],
  ])("is read in spite of %s", (_, text) => {
    expect(summaryOf(decode(text + ended("completed")))).toEqual(answer as never);
  });

  test.each([
    [
      "the only arguments are those of their end: Wei-Shaw/sub2api#6629",
      added(0, call({ call_id: "a", arguments: "" })) +
        frame("response.function_call_arguments.done", { output_index: 0, arguments: '{"id":1}' }),
    ],
    [
      "the only arguments are those of the item: weave-os/router#331",
      added(0, call({ call_id: "a" })) + done(0, call({ call_id: "a", arguments: '{"id":1}' })),
    ],
    [
      "the end of the arguments is in the item alone: anomalyco/opencode#44862",
      added(0, call({ call_id: "a" })) +
        delta(0, '{"id"', "function_call_arguments") +
        done(0, call({ call_id: "a", arguments: '{"id":1}' })),
    ],
    [
      "pieces come before their call: docker/docker-agent#3825",
      delta(0, '{"id":1}', "function_call_arguments") +
        done(0, call({ call_id: "a", arguments: '{"id":1}' })),
    ],
    [
      "pieces have no place: lidge-jun/opencodex#1361",
      added(0, call({ call_id: "a" })) +
        delta(0, '{"id":1}', "function_call_arguments", { output_index: undefined }),
    ],
    [
      "a thought and a call have one place: decolua/9router#2611",
      added(0, { type: "reasoning", id: "rs_1" }) +
        done(0, { type: "reasoning", id: "rs_1", summary: [] }) +
        added(0, call({ call_id: "a" })) +
        delta(0, '{"id":1}', "function_call_arguments") +
        done(0, call({ call_id: "a", arguments: '{"id":1}' })),
    ],
    ["only the response has the call", ""],
  ])("has a whole call where %s", (what, text) => {
    const output = what.startsWith("only") ? [call({ call_id: "a", arguments: '{"id":1}' })] : [];
    expect(summaryOf(decode(text + ended("completed", { output })))).toMatchObject({
      calls: [{ id: "a", kind: "function", name: "f", input: '{"id":1}' }],
      finish: "tool_calls",
    });
  });

  test.each([
    ["the response is empty: open-webui/open-webui#27800", done(0, message("hello")), []],
    ["only the response has it", "", [message("hello")]],
    ["the response has it again", added(0, message("")) + delta(0, "hello"), [message("hello")]],
    [
      "the item is empty at its end: makecindy/cindy#4509",
      added(0, message("")) +
        delta(0, "hello", "output_text", { content_index: undefined }) +
        done(0, { type: "message", content: [{ type: "output_text" }] }),
      [],
    ],
    [
      "the text goes on after its end: diegosouzapw/OmniRoute#13693",
      added(0, message("")) + delta(0, "h") + done(0, message("h")) + delta(0, "ello"),
      [],
    ],
    ["nothing announces it", delta(0, "hello"), []],
  ])("has the whole text once where %s", (_, text, output) => {
    expect(summaryOf(decode(text + ended("completed", { output })))).toEqual({
      ...nothing,
      text: "hello",
      finish: "stop",
      usage: counted,
    } as never);
  });

  test.each([
    ["max_output_tokens", "length"],
    // earendil-works/pi#7817
    ["length", "length"],
    ["content_filter", "content_filter"],
    [undefined, "length"],
  ])("ends early for %s as %s", (reason, finish) => {
    const details = { incomplete_details: reason === undefined ? null : { reason } };
    const thought = done(0, { type: "reasoning", summary: [], encrypted_content: "x" });
    // Only thoughts, and usage: BerriAI/litellm#37710.
    expect(summaryOf(decode(thought + ended("incomplete", details)))).toMatchObject({
      text: "",
      finish,
      usage: counted,
      failure: undefined,
    });
  });

  test.each([
    [ended("failed", { error: { code: "rate_limit_exceeded", message: "slow" } }), "throttled"],
    [ended("failed", { error: { code: "server_error", message: "oops" } }), "unavailable"],
    [ended("failed", { error: null }), "unavailable"],
    [
      frame("error", { error: { type: "invalid_request_error", code: "context_length_exceeded" } }),
      "context-overflow",
    ],
    [frame("error", { code: "server_is_overloaded", message: "busy" }), "overloaded"],
    [
      'data: {"error":{"message":"Input tokens exceed the configured limit of 9"}}\n\n',
      "context-overflow",
    ],
    [ended("cancelled"), "broken-answer"],
    [ended("completed"), "broken-answer"],
    [added(0, message("")) + delta(0, "cut"), "broken-answer"],
    ['data: {"type":"response.completed"', "broken-answer"],
    // The runtime endpoint answers unknown paths so, with 200: aws-samples/sample-per-model-bedrock.
    [
      '{"Output":{"__type":"com.amazon.coral.service#UnknownOperationException"},"Version":"1.0"}',
      "unknown-model",
    ],
    [
      '{"error":{"message":"Incorrect API key provided","code":"invalid_api_key"}}',
      "bad-credential",
    ],
  ])("that fails is a failure: %#", (text, kind) => {
    expect(summaryOf(decode(text)).failure).toBe(kind as never);
  });

  test("keeps what a failed answer has cost", () => {
    const { failure } = decode(ended("failed", { error: { code: "server_error" } }));
    expect(failure?.details.usage).toEqual(counted);
  });

  test("has ids for calls without or with the same ones, and JSON for empty arguments", () => {
    const calls = [call({ arguments: "" }), call({ call_id: "a" }), call({ call_id: "a" })];
    const { calls: read } = summaryOf(
      decode(calls.map((item, index) => done(index, item)).join("") + ended("completed")),
    );
    expect(new Set(read.map(({ id }) => id)).size).toBe(3);
    expect(read.map(({ input }) => input)).toEqual(["{}", "{}", "{}"]);
  });

  test("ends at the caller's stop sequence, for which the wire has no field", () => {
    const text = added(0, message("")) + delta(0, "one EN") + delta(0, "D two");
    const decoded = decode(text + ended("completed"), hello({ stop: ["END"] }));
    expect(summaryOf(decoded)).toMatchObject({ text: "one ", finish: "stop_sequence" });
    expect(decoded.isDone).toBe(true);
  });

  test("answers the deprecated functions with one call", () => {
    const functions = [{ name: "f", parameters: { type: "object" } }];
    const { events } = decode(
      done(0, call({ call_id: "a", arguments: "{}" })) + ended("completed"),
      hello({ functions }),
    );
    expect(events.map(({ type }) => type)).toEqual([
      "function-call-start",
      "function-call-delta",
      "choice-finish",
      "usage-report",
    ]);
    expect(events).toContainEqual({
      type: "choice-finish",
      choice: 0,
      finishReason: "function_call",
    });
  });
});

test("a whole response is read as its stream, and so is a stream in its place", () => {
  const response = {
    object: "response",
    status: "completed",
    error: null,
    output: [
      { type: "reasoning", summary: [{ text: "Hm." }], encrypted_content: "sealed" },
      message("hello"),
      { type: "message", content: [{ type: "refusal", refusal: "no" }] },
      call({ call_id: "a", arguments: "{}" }),
    ],
    usage,
    service_tier: "default",
  };
  const exchange = codec.encode(hello(), "m");
  const read = (answer: WholeAnswer) => exchange.decode(answer);
  const bodyOf = (text: string) => ({
    headers: { get: () => null },
    body: new TextEncoder().encode(text),
  });
  const result = read(bodyOf(JSON.stringify(response)));
  expect(result.choices[0]?.blocks).toEqual([
    { type: "reasoning", text: "Hm.", opaque: "sealed" },
    { type: "text", text: "hello" },
    { type: "refusal", text: "no" },
    { type: "tool-call", id: "a", kind: "function", name: "f", arguments: "{}" },
  ]);
  expect([result.usage, result.serviceTier]).toEqual([
    { ...counted, serviceTier: "default" },
    "default",
  ]);
  expect(read(bodyOf(whole + ended("completed"))).choices[0]?.finishReason).toBe("tool_calls");
  expect(() => read(bodyOf('{"object":"list"}'))).toThrow(UpstreamFailure);
});

test.each([
  ["presence_penalty", 1],
  ["frequency_penalty", -1],
  ["logit_bias", { "1": 1 }],
  ["n", 2],
])("%s, for which the wire has no field, is refused", (field, value) => {
  expect(() => codec.encode(hello({ [field]: value }), "m")).toThrow(`does not support ${field}`);
});
