import { describe, expect, test } from "bun:test";
import type { ChatEvent } from "../../domain/chat/answer.ts";
import type { JsonObject } from "../../domain/json-object.ts";
import { textOf } from "../../domain/json-fields.ts";
import type { TokenUsage } from "../../domain/usage/usage.ts";
import { MessageStreamWriter } from "./write-stream.ts";

const usage: TokenUsage = {
  inputTokens: 100,
  outputTokens: 20,
  cachedInputTokens: 60,
  cacheWriteTokens: 10,
  reasoningTokens: 7,
};

/** Each event is written alone, as its part of the answer arrives. */
function framesOf(events: readonly ChatEvent[]): string {
  const options = { id: "msg_1", model: "claude", inputTokens: () => 42 };
  const writer = new MessageStreamWriter(options);
  return events.map((event) => writer.write([event])).join("") + writer.end(usage);
}

function dataOf(frames: string): readonly JsonObject[] {
  return frames
    .split("\n\n")
    .filter((frame) => frame !== "")
    .map((frame) => {
      const [, event, json = ""] = /^event: (\w+)\ndata: ([^\n]*)$/.exec(frame) ?? [];
      const data = JSON.parse(json) as JsonObject;
      expect(data["type"]).toBe(event);
      return data;
    });
}

/** The events between the start of the message and its end. */
function blocksOf(events: readonly ChatEvent[]): readonly JsonObject[] {
  return dataOf(framesOf(events)).slice(1, -2);
}

const say = (text: string): ChatEvent => ({ type: "text-delta", choice: 0, text });
const think = (text: string): ChatEvent => ({ type: "reasoning-delta", choice: 0, text });
const start = (call: number, kind: "function" | "custom" = "function"): ChatEvent => ({
  type: "tool-call-start",
  choice: 0,
  call,
  id: `call_${call}`,
  kind,
  name: `tool_${call}`,
});
const input = (call: number, text: string): ChatEvent => ({
  type: "tool-call-delta",
  choice: 0,
  call,
  arguments: text,
});
const finish = (finishReason: "stop" | "tool_calls" | "length"): ChatEvent => ({
  type: "choice-finish",
  choice: 0,
  finishReason,
});

const opened = (index: number, content_block: object) => ({
  type: "content_block_start",
  index,
  content_block,
});
const delta = (index: number, change: object) => ({
  type: "content_block_delta",
  index,
  delta: change,
});
const closed = (index: number) => ({ type: "content_block_stop", index });
const text = (index: number, ...pieces: readonly string[]) => [
  opened(index, { type: "text", text: "" }),
  ...pieces.map((piece) => delta(index, { type: "text_delta", text: piece })),
  closed(index),
];
const call = (index: number, name: number, ...parts: readonly string[]) => [
  opened(index, { type: "tool_use", id: `call_${name}`, name: `tool_${name}`, input: {} }),
  ...["", ...parts].map((partial_json) => delta(index, { type: "input_json_delta", partial_json })),
  closed(index),
];

test("a text is one block, and the message says its usage at both ends", () => {
  expect(dataOf(framesOf([say("Hel"), say("lo"), finish("stop")]))).toEqual([
    {
      type: "message_start",
      message: {
        id: "msg_1",
        type: "message",
        role: "assistant",
        model: "claude",
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage: {
          input_tokens: 42,
          cache_creation_input_tokens: 0,
          cache_read_input_tokens: 0,
          output_tokens: 0,
        },
      },
    },
    ...text(0, "Hel", "lo"),
    {
      type: "message_delta",
      delta: { stop_reason: "end_turn", stop_sequence: null },
      usage: {
        input_tokens: 30,
        cache_creation_input_tokens: 10,
        cache_read_input_tokens: 60,
        output_tokens: 20,
        output_tokens_details: { thinking_tokens: 7 },
      },
    },
    { type: "message_stop" },
  ]);
});

test("the start has what the upstream counted, if it counts there", () => {
  const counted = { ...usage, outputTokens: 1 };
  const [first] = dataOf(framesOf([{ type: "usage-start", usage: counted }, say("a")]));
  expect(first).toMatchObject({
    message: {
      usage: { input_tokens: 30, cache_read_input_tokens: 60, cache_creation_input_tokens: 10 },
    },
  });
});

test("an answer of nothing is a message without blocks", () => {
  const events = dataOf(framesOf([finish("stop")]));
  expect(events.map(({ type }) => type)).toEqual([
    "message_start",
    "message_delta",
    "message_stop",
  ]);
  expect(blocksOf([say(""), think(""), finish("stop")])).toEqual([]);
});

test("thoughts, texts and calls keep their order, each closed before the next", () => {
  const events = [
    think("hm"),
    { type: "reasoning-block", choice: 0, content: { type: "reasoning", text: "hm", opaque: "s" } },
    say("a"),
    start(0),
    input(0, '{"x"'),
    input(0, ":1}"),
    say("b"),
    think("more"),
    finish("tool_calls"),
  ] as const;
  expect(blocksOf(events)).toEqual([
    opened(0, { type: "thinking", thinking: "", signature: "" }),
    delta(0, { type: "thinking_delta", thinking: "hm" }),
    delta(0, { type: "signature_delta", signature: "s" }),
    closed(0),
    ...text(1, "a"),
    ...call(2, 0, '{"x"', ":1}"),
    ...text(3, "b"),
    opened(4, { type: "thinking", thinking: "", signature: "" }),
    delta(4, { type: "thinking_delta", thinking: "more" }),
    closed(4),
  ]);
});

describe("a thought", () => {
  test("that is not shown has one empty delta before its signature", () => {
    const content = { type: "reasoning", text: "", opaque: "sig" } as const;
    expect(blocksOf([{ type: "reasoning-block", choice: 0, content }, say("a")])).toEqual([
      opened(0, { type: "thinking", thinking: "", signature: "" }),
      delta(0, { type: "thinking_delta", thinking: "" }),
      delta(0, { type: "signature_delta", signature: "sig" }),
      closed(0),
      ...text(1, "a"),
    ]);
  });

  test("that comes whole is one delta; two thoughts are two blocks", () => {
    const thought = (opaque: string): ChatEvent => ({
      type: "reasoning-block",
      choice: 0,
      content: { type: "reasoning", text: `of ${opaque}`, opaque },
    });
    const blocks = blocksOf([thought("a"), thought("b")]);
    expect(blocks.filter(({ type }) => type === "content_block_start")).toHaveLength(2);
    expect(blocks[5]).toEqual(delta(1, { type: "thinking_delta", thinking: "of b" }));
  });

  test("that was redacted is whole in its start", () => {
    const content = { type: "reasoning", text: "", opaque: "xyz", isRedacted: true } as const;
    expect(blocksOf([{ type: "reasoning-block", choice: 0, content }])).toEqual([
      opened(0, { type: "redacted_thinking", data: "xyz" }),
      closed(0),
    ]);
  });
});

describe("calls", () => {
  test("without input have an empty object, which clients can parse", () => {
    expect(blocksOf([start(0), finish("tool_calls")])).toEqual(call(0, 0, "{}"));
    expect(blocksOf([start(0), input(0, ""), finish("tool_calls")])).toEqual(call(0, 0, "{}"));
    expect(blocksOf([start(0), input(0, "{}"), finish("tool_calls")])).toEqual(call(0, 0, "{}"));
  });

  test("one after the other are streamed as they come", () => {
    const writer = new MessageStreamWriter({ id: "msg_1", model: "m", inputTokens: () => 1 });
    writer.write([start(0), input(0, "{}")]);
    expect(dataOf(writer.write([start(1), input(1, '{"a":')]))).toEqual([
      closed(0),
      ...call(1, 1, '{"a":').slice(0, -1),
    ]);
  });

  test("whose parts alternate are written one after the other, none lost", () => {
    const events = [
      start(0),
      start(1),
      input(0, '{"a'),
      say("between"),
      input(1, '{"b"'),
      input(0, '":1}'),
      start(2),
      input(1, ":2}"),
      finish("tool_calls"),
    ];
    expect(blocksOf(events)).toEqual([
      ...call(0, 0, '{"a', '":1}'),
      ...call(1, 1, '{"b"', ":2}"),
      ...text(2, "between"),
      ...call(3, 2, "{}"),
    ]);
  });

  test("cut in the middle are closed as they are", () => {
    const frames = dataOf(framesOf([start(0), input(0, '{"a'), finish("length")]));
    expect(frames.slice(1, -2)).toEqual(call(0, 0, '{"a'));
    expect(frames.at(-2)).toMatchObject({ delta: { stop_reason: "max_tokens" } });
  });

  test("of a tool that takes text have it in an object", () => {
    const parts = blocksOf([
      start(0, "custom"),
      input(0, 'say "hi"\n'),
      input(0, "\u{1f600}"),
      finish("tool_calls"),
    ]).map(({ delta: change }) => textOf((change as JsonObject | undefined)?.["partial_json"]));
    expect(JSON.parse(parts.join(""))).toEqual({ input: 'say "hi"\n\u{1f600}' });
  });

  test("without an id get one, also those of the deprecated functions", () => {
    const events = [
      { type: "function-call-start", choice: 0, name: "old" },
      { type: "function-call-delta", choice: 0, arguments: "{}" },
      { type: "choice-finish", choice: 0, finishReason: "function_call" },
    ] as const;
    const frames = dataOf(framesOf(events));
    expect(frames[1]).toEqual(
      opened(0, { type: "tool_use", id: "toolu_1_0", name: "old", input: {} }),
    );
    expect(frames.at(-2)).toMatchObject({ delta: { stop_reason: "tool_use" } });
  });
});

test.each([
  ["stop", {}, "end_turn"],
  ["tool_calls", {}, "end_turn"],
  ["stop_sequence", { stopSequence: "END" }, "stop_sequence"],
  ["length", {}, "max_tokens"],
  ["window_full", {}, "model_context_window_exceeded"],
  ["content_filter", {}, "refusal"],
  ["refusal", {}, "refusal"],
  ["pause", {}, "pause_turn"],
] as const)("%s with %p ends as %s", (finishReason, more, word) => {
  const end = { type: "choice-finish", choice: 0, finishReason, ...more } as const;
  const details = { type: "refusal", category: null, explanation: null };
  expect(dataOf(framesOf([say("a"), end])).at(-2)?.["delta"]).toEqual({
    stop_reason: word,
    stop_sequence: word === "stop_sequence" ? "END" : null,
    ...(word === "refusal" && { stop_details: details }),
  });
});

test("a refusal in words is text, and the reason says what it is", () => {
  const events = dataOf(
    framesOf([{ type: "refusal-delta", choice: 0, text: "No." }, finish("stop")]),
  );
  expect(events.slice(1, -2)).toEqual(text(0, "No."));
  expect(events.at(-2)).toMatchObject({ delta: { stop_reason: "refusal" } });
});

test("a keep-alive is a ping", () => {
  const writer = new MessageStreamWriter({ id: "msg_1", model: "m", inputTokens: () => 1 });
  expect(writer.keepAlive()).toBe('event: ping\ndata: {"type":"ping"}\n\n');
});
