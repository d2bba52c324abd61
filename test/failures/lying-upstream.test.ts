import { afterAll, beforeAll, expect, test } from "bun:test";
import { embeddingsOf, errorOf } from "../support/bodies.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";

/** An upstream that sends the given answers. */
let answer: unknown;
const upstream = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  fetch: () => Response.json(answer),
});
const url = JSON.stringify(`http://127.0.0.1:${upstream.port}/v1`);

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({
    sections: {
      upstreams: `
  simulator: { kind: openai, base_url: ${url}, takes_token_ids: false }
  small: { kind: openai, base_url: ${url}, embedding_batch_limit: 1, max_in_flight: 2 }`,
      models: `
  chat-model:
    kind: chat
    context_window: 1000
    targets: [{ upstream: simulator, model: m }]
  embedding-model:
    kind: embedding
    context_window: 1000
    targets: [{ upstream: simulator, model: m }]
  batched-model:
    kind: embedding
    context_window: 1000
    fan_out: 4
    targets: [{ upstream: small, model: m }]`,
    },
  });
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await upstream.stop(true);
});

const chat = { model: "chat-model", messages: [{ role: "user", content: "hi" }] };
const message = { role: "assistant", content: "hello" };

test.each([1e300, "1e999", -5, 2 ** 60, null, {}, "many"])(
  "a count of %p does not reach the ledger, and later rows are stored",
  async (count) => {
    const usage = { prompt_tokens: count, completion_tokens: count };
    answer = { choices: [{ index: 0, message, finish_reason: "stop" }], usage };
    const response = await gateway.post("/v1/chat/completions", chat);
    expect(response.status).toBe(200);
    await response.text();
    const [row] = await gateway.usage();
    expect(row?.id).toBe(response.headers.get("x-request-id") ?? "");
    expect(row?.usageSource).toBe("counted");
    expect(row?.inputTokens).toBeGreaterThan(0);
    expect(row?.inputTokens).toBeLessThan(1_000);
  },
);

test("a vector that is text, but not base64, is a broken answer", async () => {
  answer = { data: [{ index: 0, embedding: 'AAAA"},{"evil":"' }] };
  const body = { model: "embedding-model", input: "hi", encoding_format: "base64" };
  const response = await gateway.post("/v1/embeddings", body);
  expect(response.status).toBe(503);
  expect((await errorOf(response)).code).toBe("model_unavailable");
});

test("invalid token ids are the caller's error", async () => {
  for (const input of [[999_999_999], [[100_300]], [[1, 2], [2 ** 40]]]) {
    const response = await gateway.post("/v1/embeddings", { model: "embedding-model", input });
    const { param, message: text } = await errorOf(response);
    expect([response.status, param]).toEqual([400, "input"]);
    expect(text).toContain("token ids");
  }
});

test("the batches of one call never refuse each other", async () => {
  answer = { data: [{ index: 0, embedding: [1, 2] }], usage: { prompt_tokens: 2 } };
  const input = ["a", "b", "c", "d", "e", "f", "g"];
  const response = await gateway.post("/v1/embeddings", { model: "batched-model", input });
  const { data, usage } = await embeddingsOf(response);
  expect([response.status, data.length, usage.prompt_tokens]).toEqual([200, 7, 14]);
});
