/** What answers say about their price is read as their providers document it. */
import { describe, expect, test } from "bun:test";
import { costOf } from "../../src/domain/money/cost.ts";
import type { Price } from "../../src/domain/money/price.ts";
import type { Conversation } from "../../src/domain/chat/conversation.ts";
import type { TokenUsage } from "../../src/domain/usage/usage.ts";
import type { ChatCodec } from "../../src/upstreams/adapter.ts";
import { adapterOf } from "../support/pipeline-fixtures.ts";
import { messagesWire } from "../../src/upstreams/shared/messages/messages-codec.ts";
import { decodeAnswer, EventDecoder } from "../../src/upstreams/shared/answer-codec.ts";
import { decodeConverse, decoderLimits } from "../support/answer-decoding.ts";

const context = {
  toolNames: new Map<string, string>(),
  textTools: new Set<string>(),
  answerTool: undefined,
  usesFunctions: false,
  stopSequences: [],
  sentStop: undefined,
  check: undefined,
};
const wire = messagesWire(context, () => undefined);
const bytesOf = (value: object): Uint8Array => new TextEncoder().encode(JSON.stringify(value));

/** Whole and streamed: the same answer with this usage. */
function messagesUsages(usage: object): readonly (TokenUsage | undefined)[] {
  const content = [{ type: "text", text: "Hi." }];
  const whole = { type: "message", content, stop_reason: "end_turn", usage };
  const stream = new EventDecoder(wire, decoderLimits);
  const { output_tokens: _, ...start } = { output_tokens: 0, ...usage };
  const events = [
    { type: "message_start", message: { usage: start } },
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
    { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Hi." } },
    { type: "content_block_stop", index: 0 },
    {
      type: "message_delta",
      delta: { stop_reason: "end_turn" },
      usage: { output_tokens: 0, ...usage },
    },
    { type: "message_stop" },
  ].flatMap((event) =>
    stream.push(new TextEncoder().encode(`event: x\ndata: ${JSON.stringify(event)}\n\n`)),
  );
  const streamed = events.findLast((event) => event.type === "usage-report")?.usage;
  return [decodeAnswer(bytesOf(whole), wire).usage, streamed];
}

/** Claude Opus 4.8. */
const opus: Price = {
  input: 5_000_000,
  cache_read: 500_000,
  cache_write: 6_250_000,
  cache_write_1h: 10_000_000,
  output: 25_000_000,
  tiers: { us: { input: 5_500_000, output: 27_500_000 } },
};

describe("Messages", () => {
  test("what is written for an hour costs that, not the price of five minutes", () => {
    const usages = messagesUsages({
      input_tokens: 0,
      cache_creation_input_tokens: 9_634,
      cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 9_634 },
      output_tokens: 0,
      service_tier: "standard",
    });
    for (const usage of usages) {
      if (usage === undefined) throw new Error("the answer has a usage");
      expect(costOf(usage, opus, usage.serviceTier)).toBe(96_340_000);
      // The same tokens at the price of five minutes would be 37 % less.
      expect(costOf({ ...usage, cacheWrite1hTokens: 0 }, opus, undefined)).toBe(60_212_500);
    }
  });

  test("reads and writes are neither free nor counted as fresh input, too", () => {
    const usages = messagesUsages({
      input_tokens: 1_000,
      cache_read_input_tokens: 10_000,
      cache_creation_input_tokens: 100,
      output_tokens: 10,
    });
    for (const usage of usages) {
      if (usage === undefined) throw new Error("the answer has a usage");
      expect(usage).toMatchObject({ inputTokens: 11_100, cachedInputTokens: 10_000 });
      expect(costOf(usage, opus, usage.serviceTier)).toBe(
        5_000_000 + 5_000_000 + 625_000 + 250_000,
      );
    }
  });

  test.each([
    [{}, undefined],
    [{ service_tier: "standard" }, "default"],
    [{ service_tier: "standard", inference_geo: "global", speed: "standard" }, "default"],
    [{ service_tier: "priority", inference_geo: "not_available" }, "priority"],
    [{ service_tier: "batch" }, "batch"],
    [{ service_tier: "standard", inference_geo: "us" }, "us"],
    [{ service_tier: "standard", speed: "fast" }, "fast"],
    [{ service_tier: "priority", speed: "fast", inference_geo: "us" }, "priority-fast-us"],
  ])("%j is priced as %p", (said, tier) => {
    for (const usage of messagesUsages({ input_tokens: 1, output_tokens: 1, ...said })) {
      expect(usage?.serviceTier).toBe(tier);
    }
  });

  test("inference in one geography has its own price, or none", () => {
    const [usage] = messagesUsages({
      input_tokens: 1_000,
      output_tokens: 100,
      inference_geo: "us",
    });
    if (usage === undefined) throw new Error("the answer has a usage");
    expect(costOf(usage, opus, usage.serviceTier)).toBe(5_500_000 + 2_750_000);
    expect(costOf(usage, { ...opus, tiers: {} }, usage.serviceTier)).toBeUndefined();
  });
});

function asking(serviceTier: string | undefined): Conversation {
  return {
    wire: "chat",
    model: "alpha",
    isStreamed: false,
    turns: [],
    tools: [],
    caps: [],
    options: { serviceTier },
    extra: {},
  };
}

function chatCodec(dropFields: string[]): ChatCodec {
  const { chat } = adapterOf("http://127.0.0.1:1", {}, { dropFields });
  if (chat === undefined) throw new Error("the adapter serves chat");
  return chat;
}

/** The tier of a whole answer, and of streams whose chunks name these. */
function chatTiers(asked: string | undefined, said: readonly (string | undefined)[], drop = false) {
  const codec = chatCodec(drop ? ["service_tier"] : []);
  const usage = { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 };
  const message = { role: "assistant", content: "Hi." };
  const body = bytesOf({
    choices: [{ index: 0, message, finish_reason: "stop" }],
    usage,
    service_tier: said.at(-1),
  });
  const whole = codec.encode(asking(asked), "m").decode({ headers: new Headers(), body });
  const decoder = codec.encodeStream(asking(asked), "m").newDecoder(decoderLimits);
  const chunks = said.map((service_tier, index) => ({
    choices: [{ index: 0, delta: { content: `${index}` }, finish_reason: null }],
    service_tier,
  }));
  const finish = { choices: [{ index: 0, delta: {}, finish_reason: "stop" }] };
  const events = [...chunks, finish, { choices: [], usage }].flatMap((chunk) =>
    decoder.push(new TextEncoder().encode(`data: ${JSON.stringify(chunk)}\n\n`)),
  );
  const streamed = events.findLast((event) => event.type === "usage-report")?.usage;
  return [whole.usage?.serviceTier, streamed?.serviceTier];
}

describe("OpenAI's chat", () => {
  test.each([
    ["nothing asked, nothing said", undefined, [undefined], undefined],
    ["the usual tier", undefined, ["default"], "default"],
    ["Groq's name of it", undefined, ["on_demand"], "default"],
    ["the last chunk says which tier served", "auto", ["auto", "priority"], "priority"],
    ["a request that was served in the usual tier", "priority", ["default"], "default"],
    ["a server that says nothing", "flex", [undefined], "flex"],
    ["the provider's choice", "auto", [undefined], undefined],
    ["another name", "fast", [undefined], "priority"],
    ["another provider's tier", undefined, ["scale"], "scale"],
  ] as const)("%s", (_, asked, said, tier) => {
    expect(chatTiers(asked, said)).toEqual([tier, tier]);
  });

  test("a tier that was not sent is not asked for", () => {
    expect(chatTiers("flex", [undefined], true)).toEqual([undefined, undefined]);
  });
});

describe("Converse", () => {
  const usage = {
    inputTokens: 10,
    outputTokens: 5,
    cacheWriteInputTokens: 60,
    cacheDetails: [
      { ttl: "5m", inputTokens: 20 },
      { ttl: "1h", inputTokens: 40 },
    ],
  };
  const message = { role: "assistant", content: [{ text: "Hi." }] };

  test.each([
    ["the tier that served", "flex", { type: "priority" }, "priority"],
    ["a request that was served in the usual tier", "priority", { type: "default" }, "default"],
    ["a model that says nothing", "flex", {}, "flex"],
    ["nothing asked, nothing said", undefined, undefined, undefined],
  ])("%s", (_, askedTier, serviceTier, tier) => {
    const body = bytesOf({ output: { message }, stopReason: "end_turn", usage, serviceTier });
    const answer = { headers: new Headers(), body };
    const result = decodeConverse(answer, { ...context, askedTier }, () => undefined);
    expect(result.usage).toMatchObject({
      inputTokens: 70,
      cacheWriteTokens: 60,
      cacheWrite1hTokens: 40,
    });
    expect(result.usage?.serviceTier).toBe(tier);
  });
});
