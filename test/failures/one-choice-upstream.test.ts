import { afterAll, beforeAll, expect, test } from "bun:test";
import { chatOf, embeddingsOf, errorOf, streamOf } from "../support/bodies.ts";
import { bedrockUpstream, startGateway, type TestGateway } from "../support/gateway.ts";

/** An upstream kind with one choice or one text a request, and images as data only. */
const png = new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 1, 2, 3]);
let picturesRead = 0;
const pictures = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  fetch() {
    picturesRead += 1;
    return new Response(png);
  },
});

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({
    kind: "bedrock",
    sections: {
      models: `
  chat-model:
    kind: chat
    context_window: 200000
    max_output_tokens: 4096
    targets: [{ upstream: simulator, model: simulated-chat, bedrock: { family: claude-4 } }]
  blind-model:
    kind: chat
    context_window: 200000
    targets: [{ upstream: simulator, model: simulated-blind, bedrock: { family: titan-text } }]
  embedding-model:
    kind: embedding
    context_window: 8192
    targets: [{ upstream: simulator, model: "amazon.titan-embed-text-v2:0" }]`,
      image_fetch: `{ enabled: true, allow_private: true, allowed_hosts: ["127.0.0.1"] }`,
    },
  });
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await pictures.stop(true);
});

const ask = (n: number, stream: boolean) => ({
  model: "chat-model",
  n,
  stream,
  ...(stream && { stream_options: { include_usage: true } }),
  messages: [{ role: "user", content: "echo: one two three" }],
});

test("n choices are one answer with one row and the sum of the counts", async () => {
  const one = await chatOf(await gateway.post("/v1/chat/completions", ask(1, false)));
  const response = await gateway.post("/v1/chat/completions", ask(3, false));
  const { choices, usage } = await chatOf(response);
  expect(choices.map(({ index, message }) => [index, message.content])).toEqual(
    [0, 1, 2].map((index) => [index, one.choices[0]?.message.content ?? ""]),
  );
  expect(usage?.prompt_tokens).toBe(3 * (one.usage?.prompt_tokens ?? 0));
  expect(usage?.completion_tokens).toBe(3 * (one.usage?.completion_tokens ?? 0));
  const rows = await gateway.usage();
  const id = response.headers.get("x-request-id");
  expect(rows.filter((row) => row.id === id)).toHaveLength(1);
});

test("n choices are streamed in parallel, with one count at the end", async () => {
  const { chunks, isDone } = await streamOf(
    await gateway.post("/v1/chat/completions", ask(3, true)),
  );
  expect(isDone).toBe(true);
  const texts = ["", "", ""];
  const finishes: number[] = [];
  for (const { choices } of chunks) {
    for (const { index, delta, finish_reason: finish } of choices) {
      texts[index] += delta.content ?? "";
      if (finish !== null) finishes.push(index);
    }
  }
  expect(new Set(texts).size).toBe(1);
  expect(texts[0]).not.toBe("");
  expect(finishes).toHaveLength(3);
  expect(new Set(finishes)).toEqual(new Set([0, 1, 2]));
  const whole = await chatOf(await gateway.post("/v1/chat/completions", ask(3, false)));
  const counts = chunks.flatMap(({ usage }) => (usage ? [usage] : []));
  expect(counts).toHaveLength(1);
  expect(counts[0]?.total_tokens).toBe(whole.usage?.total_tokens ?? 0);
});

test("more choices than the upstream has places are complete, streamed or not", async () => {
  await using narrow = await startGateway({ kind: "bedrock" });
  await narrow.reconfigure({
    upstreams: `
  simulator: ${bedrockUpstream(narrow.simulator.origin, "max_in_flight: 2")}`,
  });
  for (let round = 0; round < 5; round += 1) {
    const { chunks, isDone } = await streamOf(
      await narrow.post("/v1/chat/completions", ask(4, true)),
    );
    expect(isDone).toBe(true);
    const finished = chunks.flatMap(({ choices }) =>
      choices.filter(({ finish_reason: finish }) => finish !== null).map(({ index }) => index),
    );
    expect(new Set(finished)).toEqual(new Set([0, 1, 2, 3]));
    const { choices } = await chatOf(await narrow.post("/v1/chat/completions", ask(4, false)));
    expect(choices).toHaveLength(4);
  }
});

test("a hundred texts are a hundred requests, one answer in order and one row", async () => {
  const input = Array.from({ length: 100 }, (_, index) => `text ${index}`);
  const post = (texts: readonly string[]) =>
    gateway.post("/v1/embeddings", { model: "embedding-model", input: texts });
  const { data } = await embeddingsOf(await post(input));
  expect(data.map(({ index }) => index)).toEqual([...input.keys()]);
  for (const index of [0, 41, 99]) {
    const alone = await embeddingsOf(await post([input[index] ?? ""]));
    expect(data[index]?.embedding).toEqual(alone.data[0]?.embedding ?? []);
  }
});

const look = (url: string) => ({
  model: "chat-model",
  messages: [{ role: "user", content: [{ type: "image_url", image_url: { url } }] }],
});

test("an image by address is fetched if the operator allows it", async () => {
  const url = `http://127.0.0.1:${pictures.port}/cat.png`;
  const response = await gateway.post("/v1/chat/completions", look(url));
  expect(response.status).toBe(200);
  await response.text();
});

test("no image is fetched for a model without images", async () => {
  const before = picturesRead;
  const url = `http://127.0.0.1:${pictures.port}/cat.png`;
  const request = { ...look(url), model: "blind-model" };
  const response = await gateway.post("/v1/chat/completions", request);
  const { code, param } = await errorOf(response);
  expect([response.status, code]).toEqual([400, "unsupported_parameter"]);
  expect(param).toStartWith("messages[0].content[0]");
  expect(picturesRead).toBe(before);
});

test("an image at an internal address is a 400", async () => {
  const response = await gateway.post("/v1/chat/completions", look("http://169.254.169.254/"));
  const { code, param } = await errorOf(response);
  expect([response.status, code]).toEqual([400, "invalid_image_url"]);
  expect(param).toBe("messages[0].content[0].image_url.url");
  expect(gateway.log.join("\n")).not.toContain("169.254");
});
