import { afterAll, beforeAll, expect, test } from "bun:test";
import { mostChoices, mostToolCalls } from "../../src/upstreams/shared/collect-answer.ts";
import { errorOf, parseStream } from "../support/bodies.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";

/** An upstream that sends the most expensive answers. */
let answer: () => Response;
const upstream = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => answer() });
const url = JSON.stringify(`http://127.0.0.1:${upstream.port}/v1`);

const limitBytes = 1024 * 1024;
let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({
    sections: {
      answers: `{ chat_limit: ${limitBytes}, chat_values: 200000, embedding_limit: ${limitBytes} }`,
      upstreams: `{ hostile: { kind: openai, base_url: ${url} } }`,
      models: `
  chat-model: { kind: chat, context_window: 1000, targets: [{ upstream: hostile, model: m }] }
  embedding-model: { kind: embedding, context_window: 1000, targets: [{ upstream: hostile, model: m }] }`,
    },
  });
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await upstream.stop(true);
});

const chat = { model: "chat-model", messages: [{ role: "user", content: "hi" }] };

function toolCall(index: number): object {
  return { index, id: `call_${index}`, type: "function", function: { name: "f", arguments: "{}" } };
}

function toolCalls(count: number): readonly object[] {
  return Array.from({ length: count }, (_, index) => toolCall(index));
}

function eventStream(chunks: readonly object[]): Response {
  const frames = chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`);
  return new Response(`${frames.join("")}data: [DONE]\n\n`, {
    headers: { "content-type": "text/event-stream" },
  });
}

function chunkOf(calls: readonly object[], finish: string | null = null): object {
  return { choices: [{ index: 0, delta: { tool_calls: calls }, finish_reason: finish }] };
}

async function streamed() {
  const response = await gateway.post("/v1/chat/completions", { ...chat, stream: true });
  return { status: response.status, text: await response.text() };
}

const tooLarge = { type: "invalid_request_error", code: "answer_too_large" };

async function expectTooLarge(path: string, body: object): Promise<void> {
  const response = await gateway.post(path, body);
  expect(response.status).toBe(400);
  expect(await errorOf(response)).toMatchObject(tooLarge);
}

test("the largest allowed number of tool calls reaches the caller, streamed or not", async () => {
  answer = () => eventStream([chunkOf(toolCalls(mostToolCalls)), chunkOf([], "tool_calls")]);
  const { status, text } = await streamed();
  expect([status, parseStream(text).isDone]).toEqual([200, true]);
  const message = { content: null, tool_calls: toolCalls(mostToolCalls) };
  answer = () => Response.json({ choices: [{ message, finish_reason: "tool_calls" }] });
  expect((await gateway.post("/v1/chat/completions", chat)).status).toBe(200);
});

test.each([
  ["in one event", 1],
  ["in an event each", 20_000],
])(
  "20,000 tool calls %s end the stream with an error at the first one over the limit",
  async (_, events) => {
    const each = 20_000 / events;
    answer = () =>
      eventStream(
        Array.from({ length: events }, (_unused, event) =>
          chunkOf(Array.from({ length: each }, (_nothing, call) => toolCall(event * each + call))),
        ),
      );
    const { status, text } = await streamed();
    expect(status).toBe(200);
    const { chunks, isDone } = parseStream(text);
    const calls = chunks.flatMap(({ choices }) => choices?.[0]?.delta.tool_calls ?? []);
    expect(new Set(calls.map(({ index }) => index)).size).toBeLessThanOrEqual(mostToolCalls);
    expect(chunks.at(-1)?.error).toMatchObject(tooLarge);
    expect(isDone).toBeFalse();
  },
);

test("endless choices end the stream", async () => {
  answer = () =>
    eventStream(
      Array.from({ length: 10_000 }, (_, index) => ({
        choices: [{ index, delta: { content: "a" } }],
      })),
    );
  const { chunks, isDone } = parseStream((await streamed()).text);
  expect(chunks.length).toBeLessThanOrEqual(2 * mostChoices + 1);
  expect([chunks.at(-1)?.error?.code, isDone]).toEqual(["model_unavailable", false]);
});

/** Sends an endless body and returns the result; a failed call may be retried. */
class Endless {
  sentBytes = 0;
  cancelled = 0;
  opened = 0;

  answer(begin: string, contentType: string): Response {
    this.opened += 1;
    const part = new Uint8Array(256 * 1024).fill(0x20);
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(new TextEncoder().encode(begin)),
      pull: async (controller) => {
        await Bun.sleep(1);
        this.sentBytes += part.byteLength;
        controller.enqueue(part);
      },
      cancel: () => void (this.cancelled += 1),
    });
    return new Response(body, { headers: { "content-type": contentType } });
  }

  async allCancelled(): Promise<void> {
    const deadline = Date.now() + 20_000;
    while (this.cancelled < this.opened && Date.now() < deadline) await Bun.sleep(10);
    expect(this.cancelled).toBe(this.opened);
  }
}

test("an endless event ends the call", async () => {
  const endless = new Endless();
  answer = () => endless.answer("data: ", "text/event-stream");
  await expectTooLarge("/v1/chat/completions", { ...chat, stream: true });
  await endless.allCancelled();
  expect(endless.sentBytes / endless.opened).toBeLessThan(32 * 1024 * 1024);
});

test.each([
  [
    "tool calls",
    { choices: [{ message: { tool_calls: toolCalls(5_000) }, finish_reason: "stop" }] },
  ],
  ["choices", { choices: Array.from({ length: 5_000 }, () => ({ message: { content: "a" } })) }],
])("an unstreamed answer with too many %s is 400", async (_, body) => {
  answer = () => Response.json(body);
  await expectTooLarge("/v1/chat/completions", chat);
});

test.each([
  ["lists", "[],".repeat(60_000)],
  ["nested lists", `${"[".repeat(500)}${"]".repeat(500)},`.repeat(100)],
])("an unstreamed answer with %s beside its message is 400", async (_, lists) => {
  const message = JSON.stringify({ role: "assistant", content: "hello" });
  answer = () =>
    new Response(`{"choices":[{"message":${message},"finish_reason":"stop"}],"x":[${lists}1]}`);
  await expectTooLarge("/v1/chat/completions", chat);
});

test.each([
  ["/v1/chat/completions", chat],
  ["/v1/embeddings", { model: "embedding-model", input: "hi" }],
])(
  "an answer to %s that is longer than the limit is 400, and not read further",
  async (path, body) => {
    const giant = new Uint8Array(8 * limitBytes).fill(0x20);
    answer = () => new Response(giant, { headers: { "content-type": "application/json" } });
    await expectTooLarge(path, body);
    const endless = new Endless();
    answer = () => endless.answer("{", "application/json");
    await expectTooLarge(path, body);
    await endless.allCancelled();
    expect(endless.sentBytes / endless.opened).toBeLessThan(32 * limitBytes);
  },
);

test("an answer within the limit is served", async () => {
  const content = "a".repeat(limitBytes - 1_000);
  answer = () => Response.json({ choices: [{ message: { content }, finish_reason: "stop" }] });
  const response = await gateway.post("/v1/chat/completions", chat);
  expect(response.status).toBe(200);
  expect((await response.text()).length).toBeGreaterThan(content.length);
});
