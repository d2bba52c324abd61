import { metricsOf } from "../support/metrics-of.ts";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chatOf, parseStream } from "../support/bodies.ts";
import type { TestGateway } from "../support/gateway.ts";
import { frameOf } from "../support/bedrock-frames.ts";
import { bedrockUpstream, startGateway } from "../support/gateway.ts";
import {
  chunk,
  completion,
  gatewayOf,
  startProvider,
  streamed,
  type Provider,
} from "./provider.ts";

/** Servers have an open set of words for the end of an answer; none is read as success by default. */

const messages = [{ role: "user", content: "Hi" }];
const spare = "an answer of the next target";
const pairs = [
  ["end_turn", "stop"],
  ["MAX_TOKENS", "length"],
  ["content-filter", "content_filter"],
  ["RECITATION", "content_filter"],
  [{ type: "length", length: 10 }, "length"],
] as const;
const interruptions: readonly unknown[] = [
  { type: "abort", message: "Input length exceeds the limit" },
  "insufficient_system_resource",
  "ERROR",
  "MALFORMED_FUNCTION_CALL",
];

let first: Provider;
let second: Provider;
let gateway: TestGateway;
beforeAll(async () => {
  first = startProvider();
  second = startProvider(({ body }) => answer(body["stream"] === true, "stop", spare));
  gateway = await gatewayOf([first, second]);
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await first[Symbol.asyncDispose]();
  await second[Symbol.asyncDispose]();
});

const call = (text: string) => [
  { index: 0, id: "call_1", type: "function", function: { name: "f", arguments: text } },
];

function answer(isStreamed: boolean, word: unknown, content = "Hello", calls?: object[]): Response {
  const said = { content, ...(calls && { tool_calls: calls }) };
  const choice = { index: 0, message: { role: "assistant", ...said }, finish_reason: word };
  return isStreamed
    ? streamed([chunk(said), chunk({}, { finish_reason: word })])
    : Response.json(completion("", { choices: [choice] }));
}

const ask = (stream: boolean): Promise<Response> =>
  gateway.post("/v1/chat/completions", { model: "chat-model", messages, stream });

test.each(pairs)("%p is %s, whole and streamed", async (word, meaning) => {
  first.answers(({ body }) => answer(body["stream"] === true, word));
  const whole = await chatOf(await ask(false));
  expect(whole.choices[0]).toMatchObject({ message: { content: "Hello" }, finish_reason: meaning });
  const { chunks, isDone } = parseStream(await (await ask(true)).text());
  const reasons = chunks.flatMap(({ choices }) => choices[0]?.finish_reason ?? []);
  expect([reasons, isDone]).toEqual([[meaning], true]);
});

describe.each(interruptions)("%p", (word) => {
  test("is an error frame after content, and half a call never looks whole", async () => {
    await using failing = startProvider(() => answer(true, word));
    await using own = await gatewayOf([failing]);
    const asked = { model: "chat-model", messages, stream: true };
    for (const calls of [undefined, call('{"a":')]) {
      failing.answers(() => answer(true, word, "Hello", calls));
      const text = await (await own.post("/v1/chat/completions", asked)).text();
      expect(text).toContain('"content":"Hello"');
      expect(text).toContain('data: {"error":');
      expect(text).not.toContain('"finish_reason":"');
      expect(text).not.toContain("[DONE]");
    }
  });

  test.each([false, true])(
    "moves to the next target before content; stream: %p",
    async (stream) => {
      await using failing = startProvider(() =>
        stream ? streamed([chunk({}, { finish_reason: word })]) : answer(false, word),
      );
      await using own = await gatewayOf([failing, second]);
      const asked = { model: "chat-model", messages, stream };
      const response = await own.post("/v1/chat/completions", asked);
      expect(response.status).toBe(200);
      expect(await response.text()).toContain(spare);
      const [row] = await own.usage();
      expect(row?.routing?.attempts?.[0]).toMatchObject({ outcome: "broken-answer" });
    },
  );
});

describe("an unknown word", () => {
  test("ends an answer that has content, and is told to the operator once", async () => {
    await using provider = startProvider(({ body }) => answer(body["stream"] === true, "banana"));
    await using own = await gatewayOf([provider]);
    for (const stream of [false, true, false]) {
      const asked = { model: "chat-model", messages, stream };
      const response = await own.post("/v1/chat/completions", asked);
      expect(await response.text()).toContain('"finish_reason":"stop"');
    }
    const told = own.log.filter((line) => line.includes("banana"));
    expect(told).toHaveLength(1);
    expect(told[0]).toContain("provider-1");
    const metrics = await metricsOf(own.adminUrl);
    expect(metrics).toContain('sluice_upstream_troubles_total{upstream="provider-1"} 1');
    expect(metrics).not.toContain("banana");
  });

  test.each([
    ["without content", "", undefined],
    ["with half a call", "", call('{"a":')],
  ])("%s is a broken answer", async (_, content, calls) => {
    await using provider = startProvider(({ body }) =>
      answer(body["stream"] === true, "banana", content, calls),
    );
    await using own = await gatewayOf([provider]);
    const asked = { model: "chat-model", messages };
    expect((await own.post("/v1/chat/completions", asked)).status).toBe(503);
    const response = await own.post("/v1/chat/completions", { ...asked, stream: true });
    const text = await response.text();
    expect(text).toContain('"error":');
    expect(text).not.toContain('"finish_reason":"');
  });

  test("does not end an answer that is cut after it", async () => {
    const frames = [chunk({ content: "Hello" }), chunk({}, { finish_reason: "banana" })]
      .map((each) => `data: ${JSON.stringify(each)}\n\n`)
      .join("");
    const head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 100000\r\n";
    using server = Bun.listen({
      hostname: "127.0.0.1",
      port: 0,
      socket: { data: (socket) => void socket.end(`${head}\r\n${frames}`) },
    });
    await using own = await gatewayOf([{ url: `http://127.0.0.1:${server.port}/v1` }]);
    const asked = { model: "chat-model", messages, stream: true };
    const text = await (await own.post("/v1/chat/completions", asked)).text();
    expect(text).not.toContain('"finish_reason":"');
    expect(text).not.toContain("[DONE]");
  });
});

test.each(["null", "NULL", "", "not_finished", " "])(
  "%p in a chunk is no end of its choice",
  async (word) => {
    first.answers(() =>
      streamed([
        chunk({ content: "Hel" }, { finish_reason: word }),
        chunk({ content: "lo" }, { finish_reason: word }),
        chunk({}, { finish_reason: "stop" }),
      ]),
    );
    const { chunks } = parseStream(await (await ask(true)).text());
    const text = chunks.map(({ choices }) => choices[0]?.delta.content ?? "").join("");
    const reasons = chunks.flatMap(({ choices }) => choices[0]?.finish_reason ?? []);
    expect([text, reasons]).toEqual(["Hello", ["stop"]]);
  },
);

describe("behind kind bedrock", () => {
  const words = [
    ["SAFETY", "content_filter"],
    ["content_filtered", "content_filter"],
    ["model_context_window_exceeded", "length"],
    ["banana", "stop"],
    ["malformed_tool_use", undefined],
    ["server_error", undefined],
    ["cancelled", undefined],
  ] as const;

  test.each(words)("%p is read in the same way", async (stopReason, meaning) => {
    const content = [{ text: "Hello" }];
    const body = JSON.stringify({
      output: { message: { role: "assistant", content } },
      stopReason,
      usage: { inputTokens: 10, outputTokens: 5, totalTokens: 15 },
    });
    const frames = Buffer.concat([
      frameOf(["contentBlockDelta", { contentBlockIndex: 0, delta: { text: "Hello" } }]),
      frameOf(["messageStop", { stopReason }]),
      frameOf(["metadata", { usage: { inputTokens: 10, outputTokens: 5, totalTokens: 15 } }]),
    ]);
    const forms = [
      ["application/json", body],
      ["application/vnd.amazon.eventstream", frames],
    ] as const;
    let form: (typeof forms)[number] = forms[0];
    await using provider = startProvider(
      () => new Response(form[1], { headers: { "content-type": form[0] } }),
    );
    await using own = await startGateway({
      kind: "bedrock",
      sections: {
        upstreams: `\n  bedrock: ${bedrockUpstream(provider.url.replace("/v1", ""))}`,
        models: `
  chat-model:
    kind: chat
    context_window: 8192
    targets: [{ upstream: bedrock, model: simulated-chat, bedrock: { family: claude-4 } }]
  embedding-model: { kind: embedding, context_window: 8192, targets: [{ upstream: bedrock, model: e, bedrock: { family: titan-embed-v2 } }] }`,
      },
    });
    // Each form answers each request: the answer chooses its reader here, too.
    for (form of forms) {
      for (const stream of [false, true]) {
        const asked = { model: "chat-model", messages, stream };
        const response = await own.post("/v1/chat/completions", asked);
        const text = await response.text();
        if (meaning === undefined) {
          expect(text).toContain('"error":');
          expect(text).not.toContain('"finish_reason":"');
        } else {
          expect(response.status).toBe(200);
          expect(text).toContain(`"finish_reason":"${meaning}"`);
          expect(text).toContain("Hello");
        }
      }
    }
  });
});
