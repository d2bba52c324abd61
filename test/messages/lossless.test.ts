import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { JsonObject } from "../../src/domain/json-object.ts";
import { anthropicUpstream, bedrockUpstream, startGateway } from "../support/gateway.ts";
import type { TestGateway } from "../support/gateway.ts";
import { dataOf } from "./messages.ts";

/** What Claude says of its own reaches callers of Messages as it was, and comes back so. */
let server: Bun.Server<undefined>;
let gateway: TestGateway;
let answer: JsonObject = {};
let received: JsonObject = {};

const kinds = ["anthropic", "bedrock"] as const;

beforeAll(async () => {
  server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      received = (await request.json()) as JsonObject;
      if (received["stream"] !== true) return Response.json(answer);
      const headers = { "content-type": "text/event-stream" };
      return new Response(framesOf(answer), { headers });
    },
  });
  const { origin } = server.url;
  const model = (kind: string, target: string): string => `
  ${kind}:
    kind: chat
    context_window: 1000000
    max_output_tokens: 64000
    targets: [{ upstream: ${kind}, ${target} }]`;
  gateway = await startGateway({
    sections: {
      upstreams: `
  anthropic: ${anthropicUpstream(origin)}
  bedrock: ${bedrockUpstream(origin)}`,
      models:
        model("anthropic", "model: claude-opus-4-8") +
        model("bedrock", "model: us.anthropic.claude-opus-5, bedrock: { api: messages }"),
    },
  });
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await server.stop(true);
});

/** The stream of a message, as Anthropic's page on streaming has it. */
function framesOf({
  content,
  stop_reason,
  stop_sequence,
  stop_details,
  usage,
  ...rest
}: JsonObject) {
  const events: JsonObject[] = [
    { type: "message_start", message: { ...rest, content: [], usage } },
  ];
  (content as readonly JsonObject[]).forEach((block, index) => {
    const { citations = [], text, ...start } = block;
    const begun = text === undefined ? start : { ...start, text: "" };
    events.push({ type: "content_block_start", index, content_block: begun });
    const say = (delta: JsonObject) => events.push({ type: "content_block_delta", index, delta });
    for (const piece of (typeof text === "string" ? text : "").match(/.{1,5}/g) ?? []) {
      say({ type: "text_delta", text: piece });
    }
    for (const citation of citations as readonly object[]) {
      say({ type: "citations_delta", citation });
    }
    events.push({ type: "content_block_stop", index });
  });
  const delta = { stop_reason, stop_sequence, ...(stop_details !== undefined && { stop_details }) };
  events.push({ type: "message_delta", delta, usage }, { type: "message_stop" });
  return events
    .map((event) => `event: ${String(event["type"])}\ndata: ${JSON.stringify(event)}\n\n`)
    .join("");
}

const usage = { input_tokens: 9, output_tokens: 7 };
const about = { id: "msg_1", type: "message", role: "assistant", model: "claude" };
const document = {
  type: "document",
  source: { type: "text", media_type: "text/plain", data: "The grass is green." },
  citations: { enabled: true },
};
const place = { document_index: 0, document_title: null, file_id: null };
const citation = (cited_text: string, start: number) => ({
  type: "char_location",
  cited_text,
  ...place,
  start_char_index: start,
  end_char_index: start + cited_text.length,
});
/** Cited texts are blocks of their own, so that it is clear what is cited. */
const cited = [
  { type: "text", text: "According to the document, " },
  {
    type: "text",
    text: "the grass is green",
    citations: [citation("The grass is green.", 0), citation("green", 13)],
  },
  { type: "text", text: " and so on." },
];

interface Message extends JsonObject {
  readonly content: unknown;
}

async function ask(model: string, messages: readonly object[], stream: boolean): Promise<Message> {
  const body = { model, max_tokens: 100, messages, stream };
  const response = await gateway.post("/v1/messages", body);
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${response.status}: ${text}`);
  return stream ? accumulated(text) : (JSON.parse(text) as Message);
}

/** As Anthropic's SDKs put a message together. */
function accumulated(frames: string): Message {
  const content: Record<string, unknown>[] = [];
  let end: JsonObject = {};
  for (const event of dataOf(frames)) {
    if (event["type"] === "content_block_start") {
      content.push({ ...(event["content_block"] as object) });
    }
    if (event["type"] === "message_delta") end = event["delta"] as JsonObject;
    if (event["type"] !== "content_block_delta") continue;
    const { text, citation } = event["delta"] as { text?: string; citation?: object };
    const block = content[Number(event["index"])] ?? {};
    if (text !== undefined) block["text"] = String(block["text"]) + text;
    if (citation === undefined) continue;
    block["citations"] = [...((block["citations"] ?? []) as object[]), citation];
  }
  return { ...end, content };
}

const user = (...content: readonly object[]) => ({ role: "user", content });
const question = { type: "text", text: "Which colour?" };

describe.each(kinds)("over kind %s", (kind) => {
  test.each([false, true])("texts keep what they cite, both ways, streamed %p", async (stream) => {
    answer = { ...about, content: cited, stop_reason: "end_turn", stop_sequence: null, usage };
    const asked = user(document, question);
    const { content, stop_reason: reason } = await ask(kind, [asked], stream);
    expect(received["messages"]).toEqual([asked]);
    expect([reason, content]).toEqual(["end_turn", cited]);
    const turns = [asked, { role: "assistant", content }, user(question)];
    await ask(kind, turns, stream);
    expect(received["messages"]).toEqual(turns);
  });

  test.each([false, true])("a refusal keeps its reason, streamed %p", async (stream) => {
    const details = { type: "refusal", category: "cyber", explanation: "It would do harm." };
    const content = [{ type: "text", text: "I " }];
    const end = { stop_reason: "refusal", stop_sequence: null, stop_details: details };
    answer = { ...about, content, ...end, usage };
    expect(await ask(kind, [user(question)], stream)).toMatchObject({ ...end, content });
  });

  test("callers of other APIs get the words alone", async () => {
    answer = { ...about, content: cited, stop_reason: "end_turn", stop_sequence: null, usage };
    const said = "According to the document, the grass is green and so on.";
    for (const stream of [false, true]) {
      const chat = await gateway.post("/v1/chat/completions", {
        model: kind,
        messages: [{ role: "user", content: "Which colour?" }],
        stream,
      });
      const text = await chat.text();
      const words = [...text.matchAll(/"content":"([^"]*)"/g)].map(([, word]) => word).join("");
      expect(words).toBe(said);
      const responses = await gateway.post("/v1/responses", {
        model: kind,
        input: "Which colour?",
        stream,
      });
      expect(await responses.text()).toContain(said);
    }
  });
});
