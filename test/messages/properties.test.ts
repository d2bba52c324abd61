import { expect, test } from "bun:test";
import fc from "fast-check";
import type { AnswerBlock, ChatEvent } from "../../src/domain/chat/answer.ts";
import { type JsonObject, parseObject } from "../../src/domain/json-fields.ts";
import { collectAnswer } from "../../src/upstreams/shared/collect-answer.ts";
import { writeMessage } from "../../src/wires/messages/write-answer.ts";
import { MessageStreamWriter } from "../../src/wires/messages/write-stream.ts";
import { startGateway, chatKinds } from "../support/gateway.ts";
import { runsOf } from "../support/requirement.ts";
import { dataOf, user } from "./messages.ts";

const usage = { inputTokens: 9, outputTokens: 5, cachedInputTokens: 0, reasoningTokens: 0 };
const about = { id: "msg_1", model: "claude" };

/** As Anthropic's SDKs put a message together. Throws where one is not as they expect it. */
function accumulated(frames: string): JsonObject {
  let message: Record<string, unknown> = {};
  const content: Record<string, unknown>[] = [];
  const jsons: string[] = [];
  let open: number | undefined;
  for (const event of dataOf(frames)) {
    const index = Number(event["index"]);
    const block = content[index] ?? {};
    switch (event["type"]) {
      case "message_start":
        message = { ...(event["message"] as JsonObject) };
        break;
      case "content_block_start":
        expect([open, index]).toEqual([undefined, content.length]);
        open = index;
        content.push({ ...(event["content_block"] as JsonObject) });
        break;
      case "content_block_delta": {
        expect(open).toBe(index);
        const { type, ...fields } = event["delta"] as JsonObject;
        for (const [name, text] of Object.entries(fields)) {
          if (name === "partial_json") jsons[index] = (jsons[index] ?? "") + String(text);
          else block[name] = name === "signature" ? text : String(block[name]) + String(text);
        }
        const kinds = { text: "text", thinking: "thinking", signature: "thinking" };
        const [of = ""] = String(type).split("_");
        expect(block["type"]).toBe(of === "input" ? "tool_use" : kinds[of as keyof typeof kinds]);
        break;
      }
      case "content_block_stop":
        expect(open).toBe(index);
        open = undefined;
        break;
      case "message_delta":
        Object.assign(message, event["delta"], { usage: event["usage"] });
    }
  }
  expect(open).toBeUndefined();
  content.forEach((block, index) => {
    const json = jsons[index];
    // The input of a call that its cap cut is no JSON, as at Anthropic.
    const isCut = message["stop_reason"] === "max_tokens" && json?.endsWith("}") !== true;
    if (json !== undefined && !isCut) block["input"] = JSON.parse(json);
  });
  return { ...message, content };
}

const words = fc.string({ unit: "grapheme", maxLength: 12 });
const block: fc.Arbitrary<AnswerBlock> = fc.oneof(
  fc.record({ type: fc.constantFrom("text" as const, "refusal" as const), text: words }),
  fc.record({ type: fc.constant("reasoning" as const), text: words, opaque: fc.string() }),
  fc.record({
    type: fc.constant("reasoning" as const),
    text: fc.constant(""),
    opaque: fc.string({ minLength: 1 }),
    isRedacted: fc.constant(true as const),
  }),
  fc.record({
    type: fc.constant("tool-call" as const),
    id: fc.constantFrom("", "call_a"),
    kind: fc.constantFrom("function" as const, "custom" as const),
    name: fc.string({ minLength: 1 }),
    arguments: fc.dictionary(words, fc.jsonValue()).map((input) => JSON.stringify(input)),
  }),
);

/** Its events, with texts in pieces; parts of neighbouring calls alternate. */
function eventsOf(blocks: readonly AnswerBlock[], pieceLength: number): readonly ChatEvent[] {
  const events: ChatEvent[] = [
    { type: "answer-start", systemFingerprint: "f", serviceTier: "default" },
  ];
  let call = 0;
  let parts: ChatEvent[][] = [];
  const flush = (): void => {
    const longest = Math.max(0, ...parts.map(({ length }) => length));
    for (let at = 0; at < longest; at += 1) {
      events.push(...parts.flatMap((part) => part[at] ?? []));
    }
    parts = [];
  };
  for (const content of blocks) {
    if (content.type !== "tool-call") flush();
    const text = content.type === "tool-call" ? content.arguments : content.text;
    const pieces = text.match(new RegExp(`[^]{1,${pieceLength}}`, "gu")) ?? [];
    switch (content.type) {
      case "text":
      case "refusal":
        for (const piece of pieces) {
          events.push({ type: `${content.type}-delta`, choice: 0, text: piece });
        }
        break;
      case "reasoning":
        for (const piece of pieces) {
          events.push({ type: "reasoning-delta", choice: 0, text: piece });
        }
        events.push({ type: "reasoning-block", choice: 0, content });
        break;
      case "tool-call": {
        const { id = "", kind, name } = content;
        events.push({ type: "tool-call-start", choice: 0, call, id, kind, name });
        const own = call;
        parts.push(
          pieces.map((piece) => ({
            type: "tool-call-delta",
            choice: 0,
            call: own,
            arguments: piece,
          })),
        );
        call += 1;
      }
    }
  }
  flush();
  events.push({ type: "choice-finish", choice: 0, finishReason: "stop" });
  return events;
}

test("a stream adds up to the same message as the whole answer, however it is cut", () => {
  fc.assert(
    fc.property(
      fc.array(block, { maxLength: 6 }),
      fc.integer({ min: 1, max: 9 }),
      fc.array(fc.nat(5)),
      (blocks, pieceLength, batches) => {
        const events = eventsOf(blocks, pieceLength);
        const writer = new MessageStreamWriter({ ...about, inputTokens: () => 9 });
        let frames = "";
        let at = 0;
        for (const size of batches) {
          frames += writer.write(events.slice(at, at + size));
          at += size;
        }
        frames += writer.write(events.slice(at)) + writer.end(usage);
        const whole = writeMessage(collectAnswer(events), { ...about, usage });
        expect(accumulated(frames)).toEqual(parseObject(JSON.stringify(whole)) ?? {});
      },
    ),
    { numRuns: runsOf(5_000) },
  );
});

const json = fc.jsonValue({ maxDepth: 4 });
const blockOf = fc.oneof(
  fc.record({ type: fc.constant("text"), text: fc.string() }),
  fc.record(
    {
      type: fc.constantFrom("tool_use", "tool_result", "thinking", "document", "image", "other"),
      id: fc.constantFrom("a", "b"),
      tool_use_id: fc.constantFrom("a", "b"),
      name: fc.constantFrom("f", "g"),
      input: fc.dictionary(fc.string(), json),
      content: fc.oneof(fc.string(), json),
      thinking: fc.string(),
      signature: fc.string(),
      is_error: fc.boolean(),
      source: fc.record({
        type: fc.constantFrom("base64", "text", "url", "content", "file"),
        media_type: fc.constantFrom("image/png", "application/pdf", "text/plain"),
        data: fc.base64String(),
        url: fc.webUrl(),
      }),
    },
    { requiredKeys: ["type"] },
  ),
);
const message = fc.record({
  role: fc.constantFrom("user", "assistant", "system"),
  content: fc.oneof(fc.string(), fc.array(blockOf, { maxLength: 4 })),
});
const tool = fc.record({
  name: fc.constantFrom("f", "g"),
  input_schema: fc.dictionary(fc.string(), json),
});
const request = fc.record(
  {
    messages: fc.array(message, { maxLength: 5 }),
    system: fc.oneof(fc.string(), fc.array(blockOf, { maxLength: 2 })),
    max_tokens: fc.oneof(fc.integer({ min: 1, max: 300_000 }), json),
    stream: fc.boolean(),
    tools: fc.array(tool, { maxLength: 3 }),
    tool_choice: fc.record({
      type: fc.constantFrom("auto", "any", "tool", "none"),
      name: fc.constantFrom("f", "x"),
    }),
    thinking: fc.record({
      type: fc.constantFrom("enabled", "adaptive", "disabled"),
      budget_tokens: fc.nat(),
    }),
    temperature: fc.double({ min: 0, max: 1, noNaN: true }),
    stop_sequences: fc.array(fc.string(), { maxLength: 3 }),
    output_config: fc.record({ effort: fc.constantFrom("low", "max", "none") }),
    metadata: fc.dictionary(fc.string(), json),
    of_tomorrow: json,
  },
  { requiredKeys: ["messages"] },
);

test.each(chatKinds)(
  "any request is answered or refused on kind %s, in time",
  async (kind) => {
    await using gateway = await startGateway({ kind });
    await fc.assert(
      fc.asyncProperty(request, async (fuzzed) => {
        const body = { model: "chat-model", max_tokens: 20, ...fuzzed };
        const signal = AbortSignal.timeout(5_000);
        const response = await gateway.post("/v1/messages", body, { signal });
        const text = await response.text();
        expect(response.status).toBeLessThan(500);
        if (response.status !== 200) {
          const { type, error } = JSON.parse(text) as { type: string; error: { message: string } };
          expect([type, typeof error.message]).toEqual(["error", "string"]);
        } else if (fuzzed.stream === true) accumulated(text);
        else expect(JSON.parse(text)).toMatchObject({ type: "message" });
      }),
      { numRuns: runsOf(1_500) },
    );
  },
  120_000,
);

test("a caller that leaves a stream ends its call", async () => {
  await using gateway = await startGateway();
  const leaving = new AbortController();
  const body = {
    model: "chat-model",
    max_tokens: 100_000,
    messages: [user("count: 90000")],
    stream: true,
  };
  const response = await gateway.post("/v1/messages", body, { signal: leaving.signal });
  const reader = response.body?.getReader();
  await reader?.read();
  leaving.abort();
  while (gateway.simulator.openCalls > 0) await Bun.sleep(5);
  const [row] = await gateway.usage();
  expect(row).toMatchObject({ outcome: "abandoned", status: 499 });
});
