import { expect, test } from "bun:test";
import { bedrockUpstream, targetAt } from "../support/gateway.ts";
import { bedrockGatewayOf, converse } from "./bedrock-provider.ts";
import { gatewayOf, startProvider, streamedText, whole, type Provider } from "./provider.ts";

/** Whole answers may take as long as they need; streams begin within `timeouts.first_byte`. */

const slowMs = 400;
const later = async (answer: () => Response): Promise<Response> => {
  await Bun.sleep(slowMs);
  return answer();
};
/** First byte and idle are shorter than the answer takes. */
const times = "timeouts: { first_byte: 100ms, idle: 150ms, total: 20s }";
const chat = { model: "chat-model", messages: [{ role: "user", content: "Hi" }] };
const embed = { model: "embedding-model", input: "Hi" };

const vectors = (): Response =>
  Response.json({
    object: "list",
    model: "provider-model",
    data: [{ object: "embedding", index: 0, embedding: [1, 2] }],
    usage: { prompt_tokens: 1, total_tokens: 1 },
  });

/** Its parts are sent one after the other, `slowMs` apart. */
function inParts(parts: readonly string[], status = 200): Response {
  const encoder = new TextEncoder();
  const body = new ReadableStream({
    type: "direct",
    async pull(controller: ReadableStreamDirectController) {
      for (const [index, part] of parts.entries()) {
        if (index > 0) await Bun.sleep(slowMs);
        void controller.write(encoder.encode(part));
        await controller.flush();
      }
      controller.close();
    },
  });
  return new Response(body, { status, headers: { "content-type": "application/json" } });
}

const gatewayWith = (provider: Provider, upstream = times) =>
  gatewayOf([provider], { upstream, sections: { routing: "{ attempts: 1 }" } });

test("a whole chat answer and embeddings are not ended by first_byte, at one request each", async () => {
  await using provider = startProvider(({ path }) =>
    later(() => (path.endsWith("/embeddings") ? vectors() : whole("Hello"))),
  );
  await using gateway = await gatewayWith(provider);
  const answers = await Promise.all([
    gateway.post("/v1/chat/completions", chat),
    gateway.post("/v1/embeddings", embed),
  ]);
  expect(answers.map(({ status }) => status)).toEqual([200, 200]);
  expect(provider.requests).toHaveLength(2);
});

test("a stream that does not begin within first_byte is ended", async () => {
  await using provider = startProvider(() => later(() => streamedText("late")));
  await using gateway = await gatewayWith(provider);
  const response = await gateway.post("/v1/chat/completions", { ...chat, stream: true });
  expect(response.status).toBe(503);
});

test("the head of a whole answer may come long before its body", async () => {
  const text = JSON.stringify(await whole("Hello").json());
  await using provider = startProvider(() => inParts(["", "", text]));
  await using gateway = await gatewayWith(provider);
  const response = await gateway.post("/v1/chat/completions", chat);
  expect(response.status).toBe(200);
});

test.each([
  ["a whole answer that stops", 200, times],
  ["a whole answer at the end of timeouts.total", 200, "timeouts: { total: 200ms }"],
  ["an error whose body never comes", 500, times],
])("%s is 503", async (_, status, upstream) => {
  await using provider = startProvider(() => inParts([`{"id":`, `"x"`, `}`], status));
  await using gateway = await gatewayWith(provider, upstream);
  const response = await gateway.post("/v1/chat/completions", chat);
  expect(response.status).toBe(503);
  const [row] = await gateway.usage();
  const outcome = status === 500 ? "unavailable" : "timed-out";
  expect(row?.routing?.attempts.map((attempt) => attempt.outcome)).toEqual([outcome]);
});

test("behind Bedrock, whole answers have the same time, and streams must begin", async () => {
  await using provider = startProvider(() => later(() => converse({ text: "Hello" })));
  const origin = provider.url.replace("/v1", "");
  await using gateway = await gatewayOf([provider], {
    sections: {
      routing: "{ attempts: 1 }",
      upstreams: `\n  provider-1: ${bedrockUpstream(origin, times)}`,
      models: `
  chat-model:
    kind: chat
    context_window: 200000
    targets: [${targetAt("bedrock", { model: "model", family: "claude-4" }, "upstream: provider-1")}]`,
    },
  });
  expect((await gateway.post("/v1/chat/completions", chat)).status).toBe(200);
  const streamed = await gateway.post("/v1/chat/completions", { ...chat, stream: true });
  expect(streamed.status).toBe(503);
});

test("behind Bedrock, a stream that the model answers as a whole has the time of whole answers", async () => {
  await using provider = startProvider(() => later(() => converse({ text: "Hello" })));
  await using gateway = await bedrockGatewayOf(provider, {
    model: "us.meta.llama4-scout-17b-instruct-v1:0",
    upstream: times,
  });
  const tools = [{ type: "function", function: { name: "f" } }];
  const response = await gateway.post("/v1/chat/completions", { ...chat, tools, stream: true });
  expect(response.status).toBe(200);
  expect(await response.text()).toContain("Hello");
  expect(provider.requests).toHaveLength(1);
});
