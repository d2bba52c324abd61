import fc from "fast-check";
import { describe, expect, test } from "bun:test";
import type { AnswerBlock, ChatEvent, FinishReason } from "../../domain/chat/answer.ts";
import { GatewayError } from "../../domain/errors/gateway-error.ts";
import { type JsonObject, objectOf, textOf } from "../../domain/json-fields.ts";
import { responseWorld } from "../../../test/support/response-world.ts";
import { collectAnswer } from "../../upstreams/shared/collect-answer.ts";
import { createResponses } from "./responses.ts";

const usage = {
  inputTokens: 10,
  outputTokens: 5,
  cachedInputTokens: 2,
  cacheWriteTokens: 1,
  reasoningTokens: 3,
};
const digits = "0123456789abcdef0123456789abcdef";
const about = {
  id: `req_${digits}`,
  created: 1_700_000_000,
  model: "alpha",
  now: () => 7,
  inputTokens: () => 0,
};

const plainRequest = { model: "alpha", input: "hi", stream: true, store: false };

function read(body: JsonObject) {
  const value = structuredClone({ ...plainRequest, ...body });
  const { stored, callOf } = responseWorld();
  const asking = createResponses({ responses: stored }).read({ value, text: "" }, callOf());
  if (asking instanceof Promise) throw new Error("nothing has to be read from the store");
  return asking;
}

/** The events of a stream, in order, each checked to be named and numbered. */
function parse(frames: string): readonly JsonObject[] {
  return frames
    .split("\n\n")
    .slice(0, -1)
    .map((frame, index) => {
      const [name, data] = frame.split("\n");
      const event = objectOf(JSON.parse(data?.slice("data: ".length) ?? ""));
      expect(name).toBe(`event: ${String(event?.["type"])}`);
      expect(event?.["sequence_number"]).toBe(index);
      return event ?? {};
    });
}

function stream(events: readonly ChatEvent[], body: JsonObject = {}): readonly JsonObject[] {
  const writer = read(body).openWriter(about);
  const frames = writer.write(events);
  const last = writer.end(usage);
  if (typeof last !== "string") throw new Error("nothing has to be stored");
  return parse(frames + last);
}

function withoutResponse(event: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(event).filter(([name]) => name !== "response" && name !== "sequence_number"),
  );
}

/** The last event's response. */
function responseOf(events: readonly JsonObject[]): JsonObject {
  return objectOf(events.at(-1)?.["response"]) ?? {};
}

const finish = (finishReason: FinishReason): ChatEvent => ({
  type: "choice-finish",
  choice: 0,
  finishReason,
});
const said = (text: string): ChatEvent => ({ type: "text-delta", choice: 0, text });
const thought = (text: string): ChatEvent => ({ type: "reasoning-delta", choice: 0, text });
const callStart = (call: number, name: string, kind: "function" | "custom" = "function") =>
  ({ type: "tool-call-start", choice: 0, call, id: `call_${call}`, kind, name }) as const;
const callDelta = (call: number, text: string): ChatEvent => ({
  type: "tool-call-delta",
  choice: 0,
  call,
  arguments: text,
});

const message = `msg_${digits}0000`;

describe("the events of", () => {
  test("a text, field by field", () => {
    const events = stream([said("Hel"), said("lo"), finish("stop")]);
    const place = { item_id: message, output_index: 0, content_index: 0 };
    const part = { type: "output_text", annotations: [], logprobs: [], text: "Hello" };
    const item = { id: message, type: "message", role: "assistant" };
    const done = { ...item, status: "completed", content: [part] };
    expect(events.map(withoutResponse)).toEqual([
      { type: "response.created" },
      { type: "response.in_progress" },
      {
        type: "response.output_item.added",
        output_index: 0,
        item: { ...item, status: "in_progress", content: [] },
      },
      { type: "response.content_part.added", ...place, part: { ...part, text: "" } },
      { type: "response.output_text.delta", ...place, delta: "Hel", logprobs: [] },
      { type: "response.output_text.delta", ...place, delta: "lo", logprobs: [] },
      { type: "response.output_text.done", ...place, text: "Hello", logprobs: [] },
      { type: "response.content_part.done", ...place, part },
      { type: "response.output_item.done", output_index: 0, item: done },
      { type: "response.completed" },
    ]);
    const echo = {
      background: false,
      instructions: null,
      max_output_tokens: null,
      max_tool_calls: null,
      parallel_tool_calls: true,
      previous_response_id: null,
      prompt_cache_key: null,
      reasoning: { effort: null, summary: null },
      safety_identifier: null,
      temperature: 1,
      text: { format: { type: "text" }, verbosity: "medium" },
      tool_choice: "auto",
      tools: [],
      top_logprobs: 0,
      top_p: 1,
      truncation: "disabled",
      metadata: {},
    };
    const response = {
      id: `resp_${digits}`,
      object: "response",
      created_at: 1_700_000_000,
      model: "alpha",
      error: null,
      incomplete_details: null,
      service_tier: "default",
      store: false,
      ...echo,
    };
    expect(events[0]?.["response"]).toEqual({
      ...response,
      status: "in_progress",
      completed_at: null,
      output: [],
    });
    expect(responseOf(events)).toEqual({
      ...response,
      status: "completed",
      completed_at: 7,
      output: [done],
      usage: {
        input_tokens: 10,
        input_tokens_details: { cached_tokens: 2, cache_write_tokens: 1 },
        output_tokens: 5,
        output_tokens_details: { reasoning_tokens: 3 },
        total_tokens: 15,
      },
    });
  });

  test("a thought with ciphertext, which only the done item has and only if it was asked for", () => {
    const script: readonly ChatEvent[] = [
      thought("hm"),
      thought("m"),
      {
        type: "reasoning-block",
        choice: 0,
        content: { type: "reasoning", text: "hmm", opaque: "sig" },
      },
      said("Yes"),
      finish("stop"),
    ];
    const include = ["reasoning.encrypted_content"];
    const id = `rs_${digits}0000`;
    const place = { item_id: id, output_index: 0, summary_index: 0 };
    const part = { type: "summary_text", text: "hmm" };
    const events = stream(script, { include });
    expect(events.slice(2, 9).map(withoutResponse)).toEqual([
      {
        type: "response.output_item.added",
        output_index: 0,
        item: { id, type: "reasoning", summary: [] },
      },
      {
        type: "response.reasoning_summary_part.added",
        ...place,
        part: { type: "summary_text", text: "" },
      },
      { type: "response.reasoning_summary_text.delta", ...place, delta: "hm" },
      { type: "response.reasoning_summary_text.delta", ...place, delta: "m" },
      { type: "response.reasoning_summary_text.done", ...place, text: "hmm" },
      { type: "response.reasoning_summary_part.done", ...place, part },
      {
        type: "response.output_item.done",
        output_index: 0,
        item: { id, type: "reasoning", encrypted_content: "sig", summary: [part] },
      },
    ]);
    expect(events[9]).toMatchObject({ output_index: 1, item: { id: `msg_${digits}0001` } });
    expect(JSON.stringify(stream(script))).not.toContain("encrypted_content");
  });

  test("a redacted thought, which has no text", () => {
    const content = { type: "reasoning", text: "", opaque: "x", isRedacted: true } as const;
    const events = stream([{ type: "reasoning-block", choice: 0, content }, finish("stop")], {
      include: ["reasoning.encrypted_content"],
    });
    expect(events.slice(2, 4)).toMatchObject([
      { type: "response.output_item.added", item: { encrypted_content: "redacted:x" } },
      { type: "response.output_item.done", item: { encrypted_content: "redacted:x", summary: [] } },
    ]);
  });

  test("calls in groups, of which each ends before the next begins", () => {
    const group = { type: "namespace", name: "mail", tools: [{ type: "function", name: "send" }] };
    const events = stream(
      [
        callStart(0, "mail__send"),
        callDelta(0, '{"to":'),
        callDelta(0, '"a"}'),
        callStart(1, "plain"),
        callDelta(1, "{}"),
        finish("tool_calls"),
      ],
      { tools: [group, { type: "function", name: "plain" }] },
    );
    const [first, second] = [`fc_${digits}0000`, `fc_${digits}0001`];
    const item = {
      id: first,
      type: "function_call",
      call_id: "call_0",
      name: "send",
      namespace: "mail",
    };
    expect(events.slice(2, -1).map(withoutResponse)).toEqual([
      {
        type: "response.output_item.added",
        output_index: 0,
        item: { ...item, status: "in_progress", arguments: "" },
      },
      {
        type: "response.function_call_arguments.delta",
        item_id: first,
        output_index: 0,
        delta: '{"to":',
      },
      {
        type: "response.function_call_arguments.delta",
        item_id: first,
        output_index: 0,
        delta: '"a"}',
      },
      {
        type: "response.function_call_arguments.done",
        item_id: first,
        output_index: 0,
        arguments: '{"to":"a"}',
        name: "send",
      },
      {
        type: "response.output_item.done",
        output_index: 0,
        item: { ...item, status: "completed", arguments: '{"to":"a"}' },
      },
      {
        type: "response.output_item.added",
        output_index: 1,
        item: {
          id: second,
          type: "function_call",
          status: "in_progress",
          arguments: "",
          call_id: "call_1",
          name: "plain",
        },
      },
      {
        type: "response.function_call_arguments.delta",
        item_id: second,
        output_index: 1,
        delta: "{}",
      },
      {
        type: "response.function_call_arguments.done",
        item_id: second,
        output_index: 1,
        arguments: "{}",
        name: "plain",
      },
      {
        type: "response.output_item.done",
        output_index: 1,
        item: {
          id: second,
          type: "function_call",
          status: "completed",
          arguments: "{}",
          call_id: "call_1",
          name: "plain",
        },
      },
    ]);
  });

  test("a custom call, whose input is text", () => {
    const events = stream(
      [callStart(0, "patch", "custom"), callDelta(0, "*** {}"), finish("tool_calls")],
      { tools: [{ type: "custom", name: "patch" }] },
    );
    const id = `ctc_${digits}0000`;
    expect(events.slice(3, 6).map(withoutResponse)).toEqual([
      {
        type: "response.custom_tool_call_input.delta",
        item_id: id,
        output_index: 0,
        delta: "*** {}",
      },
      {
        type: "response.custom_tool_call_input.done",
        item_id: id,
        output_index: 0,
        input: "*** {}",
      },
      {
        type: "response.output_item.done",
        output_index: 0,
        item: {
          id,
          type: "custom_tool_call",
          status: "completed",
          input: "*** {}",
          call_id: "call_0",
          name: "patch",
        },
      },
    ]);
  });

  test("a refusal, and text before it, which are parts of one message", () => {
    const events = stream([
      said("Well."),
      { type: "refusal-delta", choice: 0, text: "No." },
      finish("refusal"),
    ]);
    expect(events.map(({ type }) => type)).toEqual([
      "response.created",
      "response.in_progress",
      "response.output_item.added",
      "response.content_part.added",
      "response.output_text.delta",
      "response.output_text.done",
      "response.content_part.done",
      "response.content_part.added",
      "response.refusal.delta",
      "response.refusal.done",
      "response.content_part.done",
      "response.output_item.done",
      "response.completed",
    ]);
    expect(events[8]).toMatchObject({ content_index: 1, delta: "No." });
    expect(events[9]).toMatchObject({ refusal: "No." });
  });

  test("probabilities, with each delta and together at the end", () => {
    const logprobs = [{ token: "a", logprob: -1, bytes: [97], top_logprobs: [] }];
    const events = stream([
      { type: "text-delta", choice: 0, text: "a", logprobs },
      { type: "text-delta", choice: 0, text: "a", logprobs },
      finish("stop"),
    ]);
    expect(events[4]).toMatchObject({ delta: "a", logprobs });
    expect(events[6]).toMatchObject({ text: "aa", logprobs: [...logprobs, ...logprobs] });
  });

  test("an empty answer has an empty message, and one without finish ends as well", () => {
    for (const script of [[finish("stop")], [said(""), finish("stop")], []]) {
      const events = stream(script);
      expect(events.map(({ type }) => type)).toEqual([
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
      ]);
    }
  });
});

test("an answer that ends early is incomplete, and so is its last item", () => {
  const cases = [
    ["length", "max_output_tokens"],
    ["window_full", "max_output_tokens"],
    ["content_filter", "content_filter"],
    ["refusal", "content_filter"],
  ] as const;
  for (const [reason, expected] of cases) {
    const events = stream([said("a"), callStart(0, "f"), callDelta(0, '{"a'), finish(reason)]);
    expect(events.at(-1)?.["type"]).toBe("response.incomplete");
    expect(responseOf(events)).toMatchObject({
      status: "incomplete",
      completed_at: null,
      incomplete_details: { reason: expected },
      output: [{ status: "completed" }, { status: "incomplete", arguments: '{"a' }],
    });
  }
  expect(responseOf(stream([finish("length")]))["output"]).toEqual([]);
});

test("a failure is told twice, since some clients look at one of the two only", () => {
  const error = new GatewayError("model_unavailable", { message: "The upstream failed." });
  for (const script of [[], [said("a")]]) {
    const writer = read({}).openWriter(about);
    const events = parse(writer.write(script) + writer.fail?.(error));
    expect(events.slice(0, 2).map(({ type }) => type)).toEqual([
      "response.created",
      "response.in_progress",
    ]);
    expect(events.at(-2)).toMatchObject({
      type: "error",
      error: {
        type: "server_error",
        code: "model_unavailable",
        message: "The upstream failed.",
        param: null,
      },
    });
    expect(events.at(-1)).toMatchObject({
      type: "response.failed",
      response: {
        status: "failed",
        error: { code: "server_error", message: "The upstream failed." },
        output: [],
      },
    });
  }
});

test("a keep-alive is a comment until the response has begun, since helpers throw on others", () => {
  const writer = read({}).openWriter(about);
  expect(writer.keepAlive()).toBeUndefined();
  writer.write([said("a")]);
  expect(writer.keepAlive()).toBe('event: keepalive\ndata: {"type":"keepalive"}\n\n');
});

test("calls whose fragments alternate keep them all", () => {
  const events = stream([
    callStart(0, "a"),
    callStart(1, "b"),
    callDelta(0, '{"x":'),
    callDelta(1, '{"y":'),
    callDelta(0, "1}"),
    callDelta(1, "2}"),
    finish("tool_calls"),
  ]);
  expect(responseOf(events)["output"]).toMatchObject([
    { name: "a", arguments: '{"x":1}' },
    { name: "b", arguments: '{"y":2}' },
  ]);
});

const text = fc.string({ unit: "grapheme", minLength: 1 });
const block: fc.Arbitrary<AnswerBlock> = fc.oneof(
  fc.record({ type: fc.constantFrom("text", "refusal"), text: fc.string() }),
  fc.record({
    type: fc.constant("reasoning"),
    text,
    opaque: fc.option(text, { nil: undefined }),
  }),
  fc.record({
    type: fc.constant("tool-call"),
    id: text,
    kind: fc.constantFrom("function", "custom"),
    name: fc.constantFrom("f", "g__h"),
    arguments: fc.constantFrom("{}", '{"a":"}"}', "text"),
  }),
);

function eventsOf(blocks: readonly AnswerBlock[]): readonly ChatEvent[] {
  let calls = 0;
  return blocks.flatMap((one): readonly ChatEvent[] => {
    switch (one.type) {
      case "text":
      case "refusal":
        if (one.text === "") return [];
        return [{ type: `${one.type}-delta`, choice: 0, text: one.text }];
      case "reasoning":
        return [thought(one.text), { type: "reasoning-block", choice: 0, content: one }];
      case "tool-call": {
        const call = calls;
        calls += 1;
        return [
          { ...callStart(call, one.name, one.kind), id: one.id ?? "" },
          callDelta(call, one.arguments),
        ];
      }
    }
  });
}

test("any answer, whole and streamed: the same output; each item and part opens and ends once", () => {
  const body = {
    include: ["reasoning.encrypted_content"],
    tools: [{ type: "namespace", name: "g", tools: [{ type: "function", name: "h" }] }],
  };
  const reasons = fc.constantFrom<FinishReason>("stop", "tool_calls", "length", "content_filter");
  fc.assert(
    fc.property(fc.array(block), reasons, (blocks, finishReason) => {
      const script = [...eventsOf(blocks), finish(finishReason)];
      const events = stream(script, body);
      const whole = objectOf(read(body).body(collectAnswer(script), { ...about, usage }));
      expect(whole?.["output"]).toEqual(responseOf(events)["output"]);
      const output = responseOf(events)["output"] as readonly JsonObject[];
      const added = events.filter(({ type }) => type === "response.output_item.added");
      const done = events.filter(({ type }) => type === "response.output_item.done");
      expect(added.map(({ output_index: index }) => index)).toEqual([...output.keys()]);
      expect(new Set(done.map(({ output_index: index }) => index))).toEqual(new Set(output.keys()));
      expect(done.length).toBe(output.length);
      const ids = output.map(({ id }) => textOf(id));
      expect(new Set(ids).size).toBe(ids.length);
      for (const event of events) {
        const id = textOf(event["item_id"]);
        if (id !== undefined) expect(ids[Number(event["output_index"])]).toBe(id);
      }
    }),
    { numRuns: 1000 },
  );
});
